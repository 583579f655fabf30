import { OperatorError } from '../../core/errors.ts';
import { lateIndexes } from '../../history/upkeep/statistics.ts';
import type { Database } from '../../postgres/database.ts';
import { madeIndexes } from '../../postgres/indexes/build-index.ts';
import { canHaveRangeIndex } from '../../tenants/custom-entities/key-ranges.ts';
import { createSortIndex, dropSortIndex, listSortIndexes } from '../../tenants/custom-entities/sort-indexes.ts';
import { createValueIndex, valueIndexName } from '../../tenants/custom-entities/value-index.ts';
import { parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals index create --sort SORT
       annals index create --filters [FIELD]
       annals index list
       annals index drop --sort SORT

Clients can sort instances of custom entities by any fields. With an index for the sort, each
page by cursor costs the same as the first; without one, Annals reads and sorts all instances
for each page. SORT is a value of the sort parameter, with 1 to 4 fields in addition to _id. An
index serves all tenants and types, and both directions of its sort. It takes disk space,
which list shows, and slows down writes; docs/pagination.md has figures. Creating one does
not block reads or writes.

One index serves filters for a value of any field (status:open). The service builds it after
its start; --filters builds it now and waits. Ranges (price:>5) and prefixes of strings
(name:Jane*) need an index that begins with the field, which --filters FIELD creates. It is
the index for a sort by that field, so an index for a sort also serves ranges of its first
field.

list shows each index that Annals created in addition to its schema, also those of the change
history, with its state: valid, building, or invalid after an interrupted build. create
rebuilds an invalid index.

Examples:
  annals index create --sort "price.amount:DESC,name"
  annals index create --filters price.amount`,

  run: runAction('index', { create, list, drop }),
};

async function create(args: string[], io: CommandIo): Promise<number> {
  const options = { sort: { type: 'string' }, filters: { type: 'boolean', default: false } } as const;
  const { values, positionals } = parseCommand('index create', { args, options, allowPositionals: true });
  const { sort, filters } = values;
  const [field, ...more] = positionals;
  if (more.length > 0 || (field !== undefined && !filters)) {
    throw new UsageError(`${more[0] ?? field} is one argument too many`);
  }
  if (filters === (sort !== undefined)) throw new UsageError('index create needs --sort or --filters');
  if (field !== undefined && !/^[A-Za-z_][A-Za-z0-9_.]*$/.test(field)) {
    throw new UsageError(`${field} is not the name of a field`);
  }
  if (field !== undefined && !canHaveRangeIndex(field)) {
    throw new UsageError(`${field} names a place in an array, which cannot be indexed`);
  }
  const order = sort ?? field;
  const index = await withInterruptibleDatabase(io, async ({ db }) =>
    order === undefined ? { name: valueIndexName, made: await createValueIndex(db) } : await createSortIndex(db, order),
  );
  io.answer(JSON.stringify(index));
  return 0;
}

async function list(args: string[], io: CommandIo): Promise<number> {
  parseCommand('index list', { args, options: {} });
  io.answer(JSON.stringify(await withInterruptibleDatabase(io, ({ db }) => listIndexes(db)), null, 2));
  return 0;
}

async function drop(args: string[], io: CommandIo): Promise<number> {
  const { sort } = parseCommand('index drop', { args, options: { sort: { type: 'string' } } }).values;
  if (sort === undefined) throw new UsageError('index drop needs --sort');
  const dropped = await withInterruptibleDatabase(io, ({ db }) => dropSortIndex(db, sort));
  if (!dropped) throw new OperatorError(`there is no index for the sort ${sort}`);
  io.answer(JSON.stringify({ sort, dropped: true }));
  return 0;
}

/** Each index that Annals created apart from its migrations, with its purpose. */
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
