import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database, DatabaseTransaction } from '../database.ts';

/**
 * Something that tenants may have to be done: rows of a table for which an SQL condition is true. The condition is a constant
 * text of the program: it never contains a value from outside.
 */
export interface TenantWork {
  readonly table: string;
  readonly condition: string;
}

// Milliseconds. What looks for work in a process does so at about the same time, and asks once.
const askEvery = 250;

/** Finds the tenants that have such work, by name. */
export type FindTenants = (work: TenantWork) => Promise<string[]>;

/**
 * The tenants that have such work now, by name. In a cluster it leaves out the tenants of a worker that is away, so that work
 * for all tenants goes on for the others.
 *
 * @example
 * await tenantsWith(db, { table: 'mail', condition: 'sent_at is null and due_at <= statement_timestamp()' });
 */
export async function tenantsWith(
  db: Database | DatabaseTransaction,
  { table, condition }: TenantWork,
): Promise<string[]> {
  const { rows } = await sql<{
    tenant: string;
  }>`select tenant from tenants_with(array[${table}], array[${condition}]) order by tenant collate "C"`.execute(db);
  return rows.map(({ tenant }) => tenant);
}

/**
 * Like `tenantsWith`, for work that every process looks for all the time. All processes of the installation share one look for all
 * of this work, so an answer may be old: by half a second, or by 50 times as long as a look takes.
 */
export function sharedLook(db: Database, allWork: readonly TenantWork[]): FindTenants {
  const tables = allWork.map(({ table }) => table);
  const conditions = allWork.map(({ condition }) => condition);
  const questions = createHash('md5').update(JSON.stringify(allWork)).digest('hex');
  let answers: Promise<string[][]> = Promise.resolve([]);
  let askedAt = Number.NEGATIVE_INFINITY;

  async function ask(): Promise<string[][]> {
    const { rows } = await sql<{ tenants: string[][] }>`
      select found_work(${questions}, ${tables}::text[], ${conditions}::text[]) as tenants`.execute(db);
    return rows[0]?.tenants ?? [];
  }

  return async (work) => {
    const place = allWork.indexOf(work);
    if (place === -1) throw new Error(`nobody looks for work of ${work.table}`);
    if (performance.now() - askedAt >= askEvery) {
      askedAt = performance.now();
      answers = ask();
    }
    return (await answers)[place] ?? [];
  };
}

/** Does work for each of these tenants. Where it fails for one, it goes on with the others and then throws the first error. */
export async function forEachTenant(
  tenants: readonly string[],
  work: (tenant: string) => Promise<unknown>,
): Promise<void> {
  const errors: unknown[] = [];
  for (const tenant of tenants) {
    try {
      await work(tenant);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

/** Work of which the database has a long backlog. */
export interface BacklogOptions {
  signal: StopSignal;
  findTenants: FindTenants;
  /** Called with the milliseconds that a portion took. */
  rest: (taken: number) => Promise<void>;
  onError: (error: unknown) => void;
  /** Milliseconds after which the round of tenants that is under way is the last one: others may have work by then. */
  maxTime?: number;
}

/**
 * Does one portion of the work of each tenant in turn, so that a long backlog does not delay the others. `portion` returns whether the
 * tenant has more. If the turn of a tenant fails, the next run tries it again. Returns the tenants that have more after `maxTime`.
 */
export async function workInTurn(
  work: TenantWork,
  { signal, findTenants, rest, onError, maxTime = Number.POSITIVE_INFINITY }: BacklogOptions,
  portion: (tenant: string) => Promise<boolean>,
): Promise<string[]> {
  const end = performance.now() + maxTime;
  let tenants = await findTenants(work);
  do {
    const open: string[] = [];
    for (const tenant of tenants) {
      if (signal.aborted) return [];
      const begun = performance.now();
      try {
        if (await portion(tenant)) open.push(tenant);
      } catch (error) {
        onError(error);
      }
      await rest(performance.now() - begun);
    }
    tenants = open;
  } while (tenants.length > 0 && performance.now() < end);
  return tenants;
}
