import type pg from 'pg';
import { OperatorError } from '../../core/operator-error.ts';
import { hasCode } from '../write-once.ts';
import type { Schema } from './read-schema.ts';
import { createOrReplace, hashRoutines, type Routine } from './routines.ts';
import { currentSchema, type StoredRoutine, storedRoutines } from './stored-routines.ts';

const kinds: readonly Routine['kind'][] = ['function', 'procedure', 'aggregate'];

// SQLSTATEs of two cases. "create or replace" fails if another result or other parameter names need a drop. A drop fails
// if an aggregate uses the function.
const needsDrop = ['42P13', '2BP01'];

/**
 * Makes the routines of the database those of the schema, except for those of indexes. It creates or replaces each
 * routine. It drops routines that an earlier call created and that no longer exist in the folder. Returns whether it
 * changed anything. The caller holds the lock of the ledger.
 */
export async function applyRoutines(client: pg.ClientBase, schema: Schema): Promise<boolean> {
  const { routinesHash, routinesVersion } = schema;
  const applied = await client.query('select from routine_set where hash = $1 and replaced_at is null', [routinesHash]);
  if (applied.rowCount !== 0) return false;
  // An aggregate consists of functions. Any other routine may use any routine, so all are checked at the end.
  const routines = kinds.flatMap((kind) => schema.routines.filter((one) => one.kind === kind && !one.indexed));
  const before = await storedRoutines(client);
  await client.query('set local check_function_bodies = off');
  await client.query('savepoint before_routines');
  try {
    await createAll(client, routines);
  } catch (error) {
    if (!hasCode(error, ...needsDrop)) throw error;
    await client.query('rollback to savepoint before_routines');
    await dropRoutines(client, []);
    await createAll(client, routines);
  }
  // Rows that the caller writes later must have the id of its own transaction.
  await client.query('release savepoint before_routines');
  const written = await findWritten(client, routines, before);
  await validate(client, written);
  await dropRoutines(client, [...written.keys()]);
  await client.query(
    `insert into routine (signature, name, hash) select * from unnest($1::text[], $2::text[], $3::text[])
       on conflict (signature) do update set hash = excluded.hash`,
    [
      [...written.keys()],
      [...written.values()].map(({ routine }) => routine.name),
      [...written.values()].map(({ routine }) => hashRoutines([routine])),
    ],
  );
  await client.query('update routine_set set replaced_at = now() where replaced_at is null');
  await client.query(
    `insert into routine_set (hash, version) values ($1, $2)
       on conflict (hash) do update set version = excluded.version, applied_at = now(), replaced_at = null`,
    [routinesHash, routinesVersion],
  );
  return true;
}

async function createAll(client: pg.ClientBase, routines: readonly Routine[]): Promise<void> {
  const schema = await currentSchema(client);
  for (const routine of routines) {
    try {
      await client.query(createOrReplace(routine, schema));
    } catch (cause) {
      if (hasCode(cause, ...needsDrop)) throw cause;
      throw faultOf(routine, cause);
    }
  }
}

interface Written {
  routine: Routine;
  stored: StoredRoutine;
}

/** The database routine that each file has written, by its signature: its row has another version than before. */
async function findWritten(
  client: pg.ClientBase,
  routines: readonly Routine[],
  before: readonly StoredRoutine[],
): Promise<Map<string, Written>> {
  const versions = new Map(before.map(({ oid, version }) => [oid, version]));
  const changed = (await storedRoutines(client)).filter(({ oid, version }) => versions.get(oid) !== version);
  const written = new Map<string, Written>();
  for (const routine of routines) {
    const [stored, second] = changed.filter(({ name }) => name === routine.name);
    if (stored === undefined || second !== undefined) {
      throw new OperatorError(`sql/${routine.file} must create one routine in the schema of Annals`);
    }
    written.set(stored.signature, { routine, stored });
  }
  return written;
}

/** Throws an OperatorError if a body uses something that does not exist. */
async function validate(client: pg.ClientBase, written: ReadonlyMap<string, Written>): Promise<void> {
  await client.query('set local check_function_bodies = on');
  for (const { routine, stored } of written.values()) {
    if (stored.validator === null) continue;
    try {
      await client.query(`select ${stored.validator}($1::oid)`, [stored.oid]);
    } catch (cause) {
      throw faultOf(routine, cause);
    }
  }
}

/** Drops our routines except for those to keep. Aggregates come first, since they consist of the others. */
async function dropRoutines(client: pg.ClientBase, keep: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ signature: string }>(
    `select r.signature from routine r left join pg_proc p on p.oid = to_regprocedure(r.signature)
       where r.signature <> all ($1) order by p.prokind = 'a' desc nulls last`,
    [keep],
  );
  for (const { signature } of rows) {
    try {
      await client.query(`drop routine if exists ${signature}`);
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new OperatorError(`The routine ${signature} cannot be dropped: ${message}`, { cause });
    }
    await client.query('delete from routine where signature = $1', [signature]);
  }
}

function faultOf({ file }: Routine, cause: unknown): OperatorError {
  const message = cause instanceof Error ? cause.message : String(cause);
  return new OperatorError(`sql/${file} cannot be applied: ${message}`, { cause });
}
