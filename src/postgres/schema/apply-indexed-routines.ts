import type pg from 'pg';
import { OperatorError } from '../../core/operator-error.ts';
import { bodyOf, createOrReplace, type Routine } from './routines.ts';
import { currentSchema, storedRoutines } from './stored-routines.ts';

/**
 * Creates the routines that indexes and columns may use. If an index uses one of them, it replaces none: the index has
 * the results from the time of its build. It never drops routines of this kind. They may call each other and PostgreSQL's
 * own functions, but cannot use our tables, because Annals creates them before the first migration. The caller holds the
 * lock of the ledger. Throws an OperatorError if a routine differs from the one that an index uses.
 */
export async function applyIndexedRoutines(client: pg.ClientBase, routines: readonly Routine[]): Promise<void> {
  const schema = await currentSchema(client);
  const stored = await storedRoutines(client);
  const differing = routines.filter((routine) => {
    const body = bodyOf(routine, schema);
    return !stored.some((one) => one.name === routine.name && one.body === body);
  });
  const names = routines.map(({ name }) => name);
  // A routine that was ordinary before is not dropped from now on.
  await client.query('delete from routine where name = any ($1)', [names]);
  if (differing.length === 0) return;
  const ours = stored.filter(({ name }) => names.includes(name));
  const existing = differing.filter(({ name }) => ours.some((one) => one.name === name));
  const [changed] = existing;
  if (changed !== undefined) {
    // The catalogue does not show which routines a body uses. So an index of one routine counts as an index of all.
    const user = await findUser(
      client,
      ours.map(({ oid }) => oid),
    );
    if (user !== undefined) {
      throw new OperatorError(
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
      throw new OperatorError(`sql/${routine.file} cannot be applied: ${message}`, { cause });
    }
  }
}

/** The object outside of a routine's body that uses one of these routines: an index, a column or a constraint. */
async function findUser(client: pg.ClientBase, oids: readonly number[]): Promise<string | undefined> {
  const { rows } = await client.query<{ user: string }>(
    `select pg_describe_object(classid, objid, objsubid) as "user" from pg_depend
       where refclassid = 'pg_proc'::regclass and refobjid = any ($1::bigint[]::oid[]) and classid <> 'pg_proc'::regclass
       order by 1 limit 1`,
    [oids],
  );
  return rows[0]?.user;
}
