import { findClient } from '../../access/oauth/clients.ts';
import { OperatorError } from '../../core/errors.ts';
import { memberOf, stringOf } from '../../core/json/members.ts';
import { parseObject } from '../../core/json/parse.ts';
import type { Database } from '../../postgres/database.ts';
import { createBatchRecorder } from '../../recording/batches/record-batch.ts';
import {
  deleteRejected,
  deleteRejectedBatch,
  listRejected,
  openRejected,
  type RejectedContent,
  tryOpenRejected,
  unknownTenant,
} from '../../recording/batches/rejected-changes.ts';
import type { RecordingClient } from '../../recording/mapping/import-line.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { retryRejected } from '../../recording/mapping/retry-rejected.ts';
import { parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { mappingOfFile } from '../mapping-file.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

const rowsAtOnce = 500;

export const command: Command = {
  help: `Usage: annals rejected list [--tenant T] [--content]
       annals rejected retry [--tenant T [--id ID]] [--mapping FILE]
       annals rejected drop --tenant T (--id ID | --all)

Annals stores rejected changes, encrypted, and records the others. list prints one JSON
object a line: tenant, id, way, by, client (the id of the client that sent the change), actor
and actorId (those of the change), position, reason, keptAt, and with --content the change.
retry checks them again, with the rules of their source, the masks of the mapping (default:
ANNALS_RECORDER_MAPPING) and the present rights of the client, and prints counts. The exit
code is 1 if some are rejected again. Rows of tables need the mapping. drop deletes them.
The tenant is "" if it is unknown.

Example:
  annals rejected list --tenant acme`,

  run: runAction('rejected', { list, retry, drop }),
};

function parse(args: string[]) {
  return parseCommand('rejected', {
    args,
    options: {
      tenant: { type: 'string' },
      id: { type: 'string' },
      all: { type: 'boolean', default: false },
      mapping: { type: 'string' },
      content: { type: 'boolean', default: false },
    },
  }).values;
}

async function list(args: string[], io: CommandIo): Promise<number> {
  const { tenant, content } = parse(args);
  return await withInterruptibleDatabase(io, async ({ db, sealer }) => {
    await requireKnown(db, tenant);
    let after: { tenant: string; id: string } | undefined;
    for (;;) {
      const rows = await listRejected(db, tenant, { after, count: rowsAtOnce });
      for (const row of rows) {
        const { sealed, recorder, tenant: of, id, way, ...shown } = row;
        const kept = sealed === null ? undefined : (content ? openRejected : tryOpenRejected)(sealer, of, id, sealed);
        const [client, { actor, actorId }] = [kept?.client, kept === undefined ? {} : whoOf(kept)];
        const [by, change] = [recorder ?? undefined, content ? kept?.line : undefined];
        io.answer(JSON.stringify({ tenant: of, id, way, by, client, actor, actorId, ...shown, change }));
        after = row;
      }
      if (rows.length < rowsAtOnce) return 0;
    }
  });
}

/** Who made the change, if it says so and can be parsed. */
function whoOf({ line }: RejectedContent): { actor?: string | undefined; actorId?: string | undefined } {
  const node = parseObject(line);
  return node === undefined
    ? {}
    : { actor: stringOf(memberOf(node, 'actor')), actorId: stringOf(memberOf(node, 'actorId')) };
}

async function mappingOf(path: string | undefined, { environment }: CommandIo): Promise<Mapping | undefined> {
  const file = path ?? environment.ANNALS_RECORDER_MAPPING;
  return file === undefined || file === '' ? undefined : await mappingOfFile(file);
}

async function retry(args: string[], io: CommandIo): Promise<number> {
  const { tenant, id, mapping: file } = parse(args);
  checkId(id);
  if (id !== undefined && tenant === undefined) throw new UsageError('rejected retry --id needs --tenant');
  return await withInterruptibleDatabase(io, async ({ db, sealer, now }) => {
    await requireKnown(db, tenant);
    const mapping = await mappingOf(file, io);
    const clientOf = (of: string, clientId: string | undefined) => recordingClient(db, of, clientId);
    const retrying = {
      db,
      sealer,
      recordBatch: createBatchRecorder({ sealer, now, people: mapping?.people }),
      mapping,
      clientOf,
    };
    const counts = await retryRejected(retrying, { tenant, id }, io.stop);
    if (id !== undefined && counts.read === 0) throw notFound(id);
    io.answer(JSON.stringify(counts));
    return counts.rejected === 0 ? 0 : 1;
  });
}

function checkId(id: string | undefined): void {
  if (id === undefined || /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return;
  throw new UsageError(`${id} is not the id of a rejected change`);
}

/** Changes whose tenant is unknown are stored without one. */
async function requireKnown(db: Database, tenant: string | undefined): Promise<void> {
  if (tenant !== undefined && tenant !== unknownTenant) await requireNamedTenant(db, tenant);
}

function notFound(id: string): OperatorError {
  return new OperatorError(`there is no rejected change ${id}`);
}

/** The present rights of the client that sent a change. A string says why it may not record. */
async function recordingClient(
  db: Database,
  tenant: string,
  clientId: string | undefined,
): Promise<RecordingClient | string> {
  const client = clientId === undefined ? undefined : await findClient(db, tenant, clientId);
  if (client === undefined) return 'its client is not known';
  if (client.revoked) return 'its client was revoked';
  const { name, scopes } = client;
  if (!scopes.includes('recorder.change_record')) return 'its client needs the scope recorder.change_record';
  return { name, tenant, maySetActor: scopes.includes('recorder.actor_set') };
}

async function drop(args: string[], io: CommandIo): Promise<number> {
  const { tenant, id, all } = parse(args);
  checkId(id);
  if (tenant === undefined) throw new UsageError('rejected drop needs --tenant');
  if ((id !== undefined) === all) throw new UsageError('rejected drop needs --id or --all');
  return await withInterruptibleDatabase(io, async ({ db }) => {
    await requireKnown(db, tenant);
    let dropped = 0;
    if (id !== undefined) {
      if (!(await deleteRejected(db, tenant, id))) throw notFound(id);
      dropped = 1;
    } else {
      for (let portion = rowsAtOnce; portion === rowsAtOnce; dropped += portion) {
        portion = await deleteRejectedBatch(db, tenant, rowsAtOnce);
      }
    }
    io.answer(JSON.stringify({ dropped }));
    return 0;
  });
}
