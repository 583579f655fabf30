import { OperatorError } from '../../core/errors.ts';
import { lateIndexes } from '../../history/upkeep/statistics.ts';
import type { Database } from '../../postgres/database.ts';
import { madeIndexes } from '../../postgres/indexes/build-index.ts';
import { canHaveRangeIndex } from '../../tenants/custom-entities/key-ranges.ts';
import { createSortIndex, dropSortIndex, listSortIndexes } from '../../tenants/custom-entities/sort-indexes.ts';
import { createValueIndex, valueIndexName } from '../../tenants/custom-entities/value-index.ts';
import { noSuchAction, parseCommand } from '../arguments.ts';
import { type Command, UsageError } from '../command.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals index create --sort SORT
       annals index create --filters [FIELD]
       annals index list
       annals index drop --sort SORT

Clients can sort instances of custom entities by any fields. With an index for a sort, each
page by cursor costs the same as the first one. Without an index, Annals reads and sorts all
instances for each page. SORT has the form of the sort parameter, with 1 to 4 fields besides
_id. An index serves all tenants and types, and its sort in both directions. It takes space
on the disk, which list shows, and makes each write slower; docs/pagination.md has figures.
Creating one does not block readers and writers.

One index serves filters for a value of any field (status:open). The service builds it after its
start; --filters builds it now and waits for it. Ranges (price:>5) and prefixes of strings
(name:Jane*) need an index that begins with the field: --filters FIELD creates it. It is the
same index as for a sort by that field, so an index for a sort also serves ranges of its
first field.

list shows each index that Annals created after its schema, also those of the change history,
with its state: valid, building, or invalid after an interrupted build. create builds an
invalid index again.

Examples:
  annals index create --sort "price.amount:DESC,name"
  annals index create --filters price.amount`,

  async run([action, ...args], io) {
    if (action === 'list') {
      if (args.length > 0) throw new UsageError(`index list takes no arguments, and was given ${args[0]}`);
      io.answer(JSON.stringify(await withInterruptibleDatabase(io, ({ db }) => listIndexes(db)), null, 2));
      return 0;
    }
    if (action !== 'create' && action !== 'drop') {
      throw noSuchAction('index', action, ['create', 'list', 'drop']);
    }
    const { sort, filters, field } = parseIndexArguments(action, args);
    if (filters && action === 'create' && sort === undefined && field === undefined) {
      const made = await withInterruptibleDatabase(io, ({ db }) => createValueIndex(db));
      io.answer(JSON.stringify({ name: valueIndexName, made }));
      return 0;
    }
    const wanted = filters && action === 'create' && sort === undefined ? field : filters ? undefined : sort;
    if (wanted === undefined)
      throw new UsageError(`index ${action} needs --sort${action === 'create' ? ' or --filters' : ''}`);
    if (action === 'create') {
      const index = await withInterruptibleDatabase(io, ({ db }) => createSortIndex(db, wanted));
      io.answer(JSON.stringify(index));
      return 0;
    }
    const dropped = await withInterruptibleDatabase(io, ({ db }) => dropSortIndex(db, wanted));
    if (!dropped) throw new OperatorError(`there is no index for the sort ${wanted}`);
    io.answer(JSON.stringify({ sort: wanted, dropped: true }));
    return 0;
  },
};

interface IndexArguments {
  readonly sort: string | undefined;
  readonly filters: boolean;
  readonly field: string | undefined;
}

function parseIndexArguments(action: string, args: string[]): IndexArguments {
  const options = { sort: { type: 'string' }, filters: { type: 'boolean', default: false } } as const;
  const { values, positionals } = parseCommand(`index ${action}`, { args, options, allowPositionals: true });
  const [field, ...more] = positionals;
  if (more.length > 0 || (field !== undefined && !values.filters)) {
    throw new UsageError(`${more[0] ?? field} is one argument too many`);
  }
  if (field !== undefined && !/^[A-Za-z_][A-Za-z0-9_.]*$/.test(field)) {
    throw new UsageError(`${field} is no field as filters write it`);
  }
  if (field !== undefined && !canHaveRangeIndex(field)) {
    throw new UsageError(`${field} names a place in an array, which an index does not have`);
  }
  return { ...values, sort: values.sort, field };
}

/** Each index that Annals made apart from its migrations, and what it is for. */
async function listIndexes(db: Database): Promise<object[]> {
  const sorts = await listSortIndexes(db);
  const withoutComment = async (name: string) =>
    (await madeIndexes(db, name)).map(({ comment: _comment, ...index }) => index);
  const ofHistory = await Promise.all(Object.values(lateIndexes).map(withoutComment));
  return [
    ...sorts.map((index) => ({ for: 'sort', ...index })),
    ...(await withoutComment(valueIndexName)).map((index) => ({ for: 'filters', ...index })),
    ...ofHistory.flat().map((index) => ({ for: 'history', ...index })),
  ];
}
