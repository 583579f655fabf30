import type pg from 'pg';
import { MigrationError } from './migration-error.ts';
import { bodyOf, createOrReplace, type Routine } from './routines.ts';
import { currentSchema, storedRoutines } from './stored-routines.ts';

/**
 * Creates the routines that indexes and columns may use. Where an index uses one of them, none is replaced: the index
 * has what they answered when it was built. Routines of this kind are never dropped. They may name each other and what
 * comes with PostgreSQL, not our tables, because they are there before the first migration. The caller holds the lock
 * of the ledger. Throws a MigrationError where a routine differs from the one that an index uses.
 */
export async function applyIndexedRoutines(client: pg.ClientBase, routines: readonly Routine[]): Promise<void> {
  const schema = await currentSchema(client);
  const stored = await storedRoutines(client);
  const differing = routines.filter((routine) => {
    const body = bodyOf(routine, schema);
    return !stored.some((one) => one.name === routine.name && one.body === body);
  });
  const names = routines.map(({ name }) => name);
  // What was an ordinary routine before is not dropped from now on.
  await client.query('delete from routine where name = any ($1)', [names]);
  if (differing.length === 0) return;
  const ours = stored.filter(({ name }) => names.includes(name));
  const existing = differing.filter(({ name }) => ours.some((one) => one.name === name));
  const [changed] = existing;
  if (changed !== undefined) {
    // What a body names is not in the catalogue, so that an index of one routine is taken for one of all.
    const user = await findUser(
      client,
      ours.map(({ oid }) => oid),
    );
    if (user !== undefined) {
      throw new MigrationError(
        `sql/${changed.file} differs from the routine that ${user} uses. Leave it as it was, and add one under another ` +
          'name together with a migration that builds such indexes anew, concurrently',
      );
    }
  }
  await client.query('set local check_function_bodies = off');
  for (const routine of differing) {
    try {
      await client.query(createOrReplace(routine, schema));
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      throw new MigrationError(`sql/${routine.file} cannot be applied: ${message}`, { cause });
    }
  }
}

/** What uses one of these routines outside of a body: an index, a column or a constraint. */
async function findUser(client: pg.ClientBase, oids: readonly number[]): Promise<string | undefined> {
  const { rows } = await client.query<{ user: string }>(
    `select pg_describe_object(classid, objid, objsubid) as "user" from pg_depend
       where refclassid = 'pg_proc'::regclass and refobjid = any ($1::bigint[]::oid[]) and classid <> 'pg_proc'::regclass
       order by 1 limit 1`,
    [oids],
  );
  return rows[0]?.user;
}
