import type pg from 'pg';
import { hashRoutines, type Routine } from './routines.ts';

interface Stored {
  oid: number;
  name: string;
  signature: string;
  version: string;
}

// What a file begins with, after its comments. A name with its schema (:"schema".name) is what an index needs, which is
// built with a search path that has nothing of ours in it.
const beginning = /^(?:--[^\n]*\n|\s*\n)*create (function|procedure|aggregate) (?::"schema"\.)?([a-z_][a-z0-9_]*)\s*\(/;

/**
 * Makes the routines of the database those of the folder, in the transaction of the client: creates or replaces each,
 * and drops those that an earlier call created and that are no longer there. Answers whether there was anything to do.
 */
export async function applyRoutines(client: pg.ClientBase, routines: Routine[]): Promise<boolean> {
  const hash = hashRoutines(routines);
  const applied = await client.query('select from routine_set where hash = $1', [hash]);
  if (applied.rowCount !== 0) return false;
  const schema = await currentSchema(client);
  const before = await storedRoutines(client);
  // Whatever the order, what a body names may be created later; all are checked in the end.
  await client.query('set local check_function_bodies = off');
  for (const routine of routines) {
    const kind = beginning.exec(routine.text);
    if (kind === null || kind[2] !== routine.name) {
      throw new Error(`sql/${routine.file} does not begin with "create function ${routine.name}("`);
    }
    if (routine.indexed && before.some((stored) => stored.name === routine.name)) continue;
    const text = routine.text.replace(/^create /m, 'create or replace ').replaceAll(':"schema"', schema);
    await client.query(text);
  }
  await recordRoutines(client, routines, before);
  await dropOthers(client, routines);
  await client.query('truncate routine_set');
  await client.query('insert into routine_set (hash) values ($1)', [hash]);
  return true;
}

async function currentSchema(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ schema: string }>('select quote_ident(current_schema()) as schema');
  const schema = rows[0]?.schema;
  if (schema === undefined) throw new Error('the search path of the database names no schema that exists');
  return schema;
}

async function storedRoutines(client: pg.ClientBase): Promise<Stored[]> {
  const { rows } = await client.query<Stored>(
    `select oid::integer as oid, proname as name, oid::regprocedure::text as signature, xmin::text as version
       from pg_proc where pronamespace = current_schema()::regnamespace`,
  );
  return rows;
}

/** Writes down which signatures are ours: those that have just been written, and those of indexes. */
async function recordRoutines(client: pg.ClientBase, routines: Routine[], before: Stored[]): Promise<void> {
  await client.query('set local check_function_bodies = on');
  const versions = new Map(before.map((stored) => [stored.oid, stored.version]));
  const after = await storedRoutines(client);
  for (const routine of routines) {
    const written = after.filter(
      (stored) => stored.name === routine.name && (routine.indexed || versions.get(stored.oid) !== stored.version),
    );
    for (const { signature } of written) {
      await client.query(
        `insert into routine (signature, name, hash) values ($1, $2, $3)
           on conflict (signature) do update set hash = excluded.hash`,
        [signature, routine.name, hashRoutines([routine])],
      );
    }
  }
}

async function dropOthers(client: pg.ClientBase, routines: Routine[]): Promise<void> {
  const { rows } = await client.query<{ signature: string }>('select signature from routine where name <> all ($1)', [
    routines.map((routine) => routine.name),
  ]);
  for (const { signature } of rows) {
    await client.query(`drop routine if exists ${signature}`);
    await client.query('delete from routine where signature = $1', [signature]);
  }
}
