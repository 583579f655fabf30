import { dirname } from 'node:path';
import type pg from 'pg';
import { hasCode, messageOf, OperatorError } from '../../core/errors.ts';
import { bodyOf, createOrReplace, hashRoutines, type Routine, type Schema } from './read-schema.ts';

const kinds: readonly Routine['kind'][] = ['function', 'procedure', 'aggregate'];

// SQLSTATEs: "create or replace" cannot change results or names of parameters, nor drop a function that an aggregate
// uses.
const needsDrop = ['42P13', '2BP01'];

/**
 * Creates or replaces the schema's routines, except those of indexes, and drops routines of earlier calls that no
 * longer exist in the folder. Returns whether it changed anything. The caller holds the lock of the ledger.
 */
export async function applyRoutines(client: pg.ClientBase, schema: Schema): Promise<boolean> {
  const { routinesHash, routinesVersion } = schema;
  const applied = await client.query('select from routine_set where hash = $1 and replaced_at is null', [routinesHash]);
  if (applied.rowCount !== 0) return false;
  // Aggregates need their functions. Other routines may use any routine, so all are checked at the end.
  const routines = kinds.flatMap((kind) =>
    schema.routines.filter((routine) => routine.kind === kind && !routine.indexed),
  );
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
  // Rows that the caller writes later must have the id of the top transaction.
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

/** The routines whose rows in the catalogue changed, by signature. */
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

/** Throws an OperatorError if a body refers to something that does not exist. */
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

/** Drops our routines except those to keep; aggregates first, since they depend on the others. */
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
      throw new OperatorError(`The routine ${signature} cannot be dropped: ${messageOf(cause)}`, { cause });
    }
    await client.query('delete from routine where signature = $1', [signature]);
  }
}

function faultOf({ file }: Routine, cause: unknown): OperatorError {
  return new OperatorError(`sql/${file} cannot be applied: ${messageOf(cause)}`, { cause });
}

/** A function, procedure or aggregate of the database. */
interface StoredRoutine {
  oid: number;
  name: string;
  /** `change_total(text,text[],text[],bigint,bigint)` */
  signature: string;
  /** A new value after each change. */
  version: string;
  body: string;
  /** The function that checks a body of its language; null if there is none. */
  validator: string | null;
}

/** The routines of the schema that Annals uses. */
async function storedRoutines(client: pg.ClientBase): Promise<StoredRoutine[]> {
  const { rows } = await client.query<StoredRoutine>(
    `select p.oid::bigint as oid, p.proname as name, p.oid::regprocedure::text as signature, p.xmin::text as version,
            p.prosrc as body, case when l.lanvalidator <> 0 and p.prokind <> 'a' then l.lanvalidator::regproc::text end as validator
       from pg_proc p join pg_language l on l.oid = p.prolang
       where p.pronamespace = current_schema()::regnamespace`,
  );
  return rows;
}

/** The name of the schema that Annals uses, quoted if necessary. */
export async function currentSchema(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ schema: string | null }>('select quote_ident(current_schema()) as schema');
  const schema = rows[0]?.schema ?? null;
  if (schema === null) throw new Error('the search path of the database names no schema that exists');
  return schema;
}

/**
 * Creates the routines that indexes and columns may use. They are never dropped, nor replaced once an index uses one:
 * the index has results of its build. They may call those of their room and PostgreSQL's functions, but not use our tables,
 * since they are created before the first migration. The caller holds the lock of the ledger. Throws an OperatorError
 * if a routine differs from the one that an index uses.
 */
export async function applyIndexedRoutines(client: pg.ClientBase, routines: readonly Routine[]): Promise<void> {
  const schema = await currentSchema(client);
  const stored = await storedRoutines(client);
  const differing = routines.filter((routine) => {
    const body = bodyOf(routine, schema);
    return !stored.some((known) => known.name === routine.name && known.body === body);
  });
  const names = routines.map(({ name }) => name);
  // Keeps routines that were ordinary before from being dropped.
  await client.query('delete from routine where name = any ($1)', [names]);
  if (differing.length === 0) return;
  for (const changed of differing) {
    if (!stored.some(({ name }) => name === changed.name)) continue;
    // The catalogue does not show which routines a body uses, so an index of one counts as an index of all in the room.
    const room = routines.filter(({ file }) => dirname(file) === dirname(changed.file)).map(({ name }) => name);
    const user = await findUser(
      client,
      stored.filter(({ name }) => room.includes(name)).map(({ oid }) => oid),
    );
    if (user !== undefined) {
      throw new OperatorError(
        `sql/${changed.file} differs from the routine that ${user} uses. Leave it as it was, and add one under another ` +
          'name together with a migration that rebuilds such indexes concurrently',
      );
    }
  }
  await client.query('set local check_function_bodies = off');
  for (const routine of differing) {
    try {
      await client.query(createOrReplace(routine, schema));
    } catch (cause) {
      throw faultOf(routine, cause);
    }
  }
}

/** An index, a column or a constraint that uses one of these routines. */
async function findUser(client: pg.ClientBase, oids: readonly number[]): Promise<string | undefined> {
  const { rows } = await client.query<{ user: string }>(
    `select pg_describe_object(classid, objid, objsubid) as "user" from pg_depend
       where refclassid = 'pg_proc'::regclass and refobjid = any ($1::bigint[]::oid[]) and classid <> 'pg_proc'::regclass
       order by 1 limit 1`,
    [oids],
  );
  return rows[0]?.user;
}
