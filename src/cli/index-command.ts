import { parseArgs } from 'node:util';
import { createSortIndex, dropSortIndex, listSortIndexes } from '../custom-entities/sort-indexes.ts';
import { createValueIndex, valueIndexName } from '../custom-entities/value-index.ts';
import { type Command, OperatorError, UsageError } from './command.ts';
import { withInterruptibleDatabase } from './with-database.ts';

export const indexCommand: Command = {
  help: `Usage: annals index create --sort SORT
       annals index create --filters
       annals index list
       annals index drop --sort SORT

Instances of custom entities can be sorted by any fields. With an index for a sort, any page
by cursor costs what the first page costs, however many instances there are; without one,
each page reads and sorts them all. SORT is written as in the sort parameter, 1 to 4 fields
besides _id. An index serves all tenants and types, and its sort in both directions. What it
costs: its size on disk, which list shows, and a part of each write; docs/pagination.md has
figures. Making one does not hold up readers and writers.

Filters for a value of any field (status:open) have one index for all. The service makes it after
its start; --filters makes it now and waits for it.

Example:
  annals index create --sort "price.amount:DESC,name"`,

  async run([action, ...args], io) {
    if (action === 'list') {
      if (args.length > 0) throw new UsageError(`index list takes no arguments, and was given ${args[0]}`);
      const indexes = await withInterruptibleDatabase(io, ({ db }) => listSortIndexes(db));
      io.answer(JSON.stringify(indexes, null, 2));
      return 0;
    }
    if (action !== 'create' && action !== 'drop') {
      throw new UsageError(action === undefined ? 'index what?' : `index cannot ${action}`);
    }
    const { values } = parseArgs({ args, options: { sort: { type: 'string' }, filters: { type: 'boolean' } } });
    const { sort, filters } = values;
    if (filters && sort === undefined && action === 'create') {
      const made = await withInterruptibleDatabase(io, ({ db }) => createValueIndex(db));
      io.answer(JSON.stringify({ name: valueIndexName, made }));
      return 0;
    }
    if (sort === undefined || filters) throw new UsageError(`index ${action} needs --sort`);
    if (action === 'create') {
      const index = await withInterruptibleDatabase(io, ({ db }) => createSortIndex(db, sort));
      io.answer(JSON.stringify(index));
      return 0;
    }
    const dropped = await withInterruptibleDatabase(io, ({ db }) => dropSortIndex(db, sort));
    if (!dropped) throw new OperatorError(`there is no index for the sort ${sort}`);
    io.answer(JSON.stringify({ sort, dropped: true }));
    return 0;
  },
};
