import type { Mapping } from '../recording/mapping/mapping.ts';
import { openKept } from '../recording/rejected/kept-change.ts';
import { deletePortion, deleteRejected, listRejected } from '../recording/rejected/rejected-store.ts';
import { retryRejected } from '../recording/rejected/retry-rejected.ts';
import { createTakeChanges } from '../recording/take-changes.ts';
import { noSuchAction, parseCommand } from './arguments.ts';
import { type Command, type CommandIo, UsageError } from './command.ts';
import { mappingOfFile } from './mapping-file.ts';
import { type DatabaseTools, withInterruptibleDatabase } from './with-database.ts';

const rowsAtOnce = 500;

export const rejectedCommand: Command = {
  help: `Usage: annals rejected list [--tenant T] [--content]
       annals rejected retry [--tenant T] [--mapping FILE]
       annals rejected drop --tenant T (--id ID | --all)

Changes that could not be recorded are kept, sealed, so that the others go on. list prints
one JSON object a line: tenant, id, way, by, position, reason, keptAt, and with --content
the change. retry tries them once more and prints counts; the exit code is 1 where some
are still rejected. Rows of tables need the mapping (default: ANNALS_RECORDER_MAPPING).
drop deletes them. The tenant is "" where it is unknown.

Example:
  annals rejected list --tenant acme`,

  async run([action, ...args], io) {
    const { values } = parseCommand('rejected', {
      args,
      options: {
        tenant: { type: 'string' },
        id: { type: 'string' },
        all: { type: 'boolean', default: false },
        mapping: { type: 'string' },
        content: { type: 'boolean', default: false },
      },
    });
    const { tenant, id, all, content } = values;
    if (action === 'list') {
      return await withInterruptibleDatabase(io, async (tools) => await list(tools, io, { tenant, content }));
    }
    if (action === 'retry')
      return await withInterruptibleDatabase(
        io,
        async (tools) => await retry(tools, io, tenant, await mappingOf(values.mapping, io)),
      );
    if (action !== 'drop') throw noSuchAction('rejected', action, ['list', 'retry', 'drop']);
    if (tenant === undefined) throw new UsageError('rejected drop needs --tenant');
    if ((id !== undefined) === all) throw new UsageError('rejected drop needs --id or --all');
    if (id !== undefined && !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) {
      throw new UsageError(`${id} is no id of a rejected change`);
    }
    return await withInterruptibleDatabase(io, async (tools) => await drop(tools, io, tenant, id));
  },
};

async function list(
  { db, sealer }: DatabaseTools,
  io: CommandIo,
  { tenant, content }: { tenant: string | undefined; content: boolean },
): Promise<number> {
  let after: { tenant: string; id: string } | undefined;
  for (;;) {
    const rows = await listRejected(db, tenant, { after, count: rowsAtOnce });
    for (const row of rows) {
      const { sealed, recorder, ...shown } = row;
      const kept = content && sealed !== null ? { change: openKept(sealer, row.tenant, row.id, sealed).line } : {};
      io.answer(JSON.stringify({ ...shown, ...(recorder === null ? {} : { by: recorder }), ...kept }));
      after = row;
    }
    if (rows.length < rowsAtOnce) return 0;
  }
}

async function mappingOf(path: string | undefined, { environment }: CommandIo): Promise<Mapping | undefined> {
  const file = path ?? environment.ANNALS_RECORDER_MAPPING;
  return file === undefined || file === '' ? undefined : await mappingOfFile(file);
}

async function retry(
  { db, sealer, now }: DatabaseTools,
  io: CommandIo,
  tenant: string | undefined,
  mapping: Mapping | undefined,
): Promise<number> {
  const retrying = { db, sealer, take: createTakeChanges({ sealer, now }), mapping };
  const counts = await retryRejected(retrying, tenant, io.stop);
  io.answer(JSON.stringify(counts));
  return counts.rejected === 0 ? 0 : 1;
}

async function drop({ db }: DatabaseTools, io: CommandIo, tenant: string, id: string | undefined): Promise<number> {
  let dropped = 0;
  if (id !== undefined) dropped = (await deleteRejected(db, tenant, id)) ? 1 : 0;
  else {
    for (let portion = rowsAtOnce; portion === rowsAtOnce; dropped += portion) {
      portion = await deletePortion(db, tenant, rowsAtOnce);
    }
  }
  io.answer(JSON.stringify({ dropped }));
  return 0;
}
