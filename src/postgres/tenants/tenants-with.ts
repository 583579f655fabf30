import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { StopSignal } from '../../core/stop-signal.ts';
import type { Database, DatabaseTransaction } from '../database.ts';

/** Work of tenants: rows of a table that satisfy an SQL condition, a constant of the program and never input. */
export interface TenantWork {
  readonly table: string;
  readonly condition: string;
}

// Milliseconds. The searches of a process come at about the same time and share a query.
const queryEvery = 250;

/** Finds the tenants that have such work, by name. */
export type FindTenants = (work: TenantWork) => Promise<string[]>;

/**
 * The tenants that have such work now, by name. In a cluster, tenants of an unreachable worker are left out, so that
 * they do not block the others.
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
 * `tenantsWith` for work that every process searches all the time. All processes of the installation share one query
 * for all of this work, so an answer may be old: by half a second, or by 50 times the duration of the query.
 */
export function sharedLook(db: Database, allWork: readonly TenantWork[]): FindTenants {
  const tables = allWork.map(({ table }) => table);
  const conditions = allWork.map(({ condition }) => condition);
  const questions = createHash('md5').update(JSON.stringify(allWork)).digest('hex');
  let answers: Promise<string[][]> = Promise.resolve([]);
  let queriedAt = Number.NEGATIVE_INFINITY;

  async function query(): Promise<string[][]> {
    const { rows } = await sql<{ tenants: string[][] }>`
      select found_work(${questions}, ${tables}::text[], ${conditions}::text[]) as tenants`.execute(db);
    return rows[0]?.tenants ?? [];
  }

  return async (work) => {
    const place = allWork.indexOf(work);
    if (place === -1) throw new Error(`unknown work of ${work.table}`);
    if (performance.now() - queriedAt >= queryEvery) {
      queriedAt = performance.now();
      answers = query();
    }
    return (await answers)[place] ?? [];
  };
}

/** Does work for each of these tenants, also after failures. Throws the first error at the end. */
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

export interface BacklogOptions {
  signal: StopSignal;
  findTenants: FindTenants;
  /** Called with the milliseconds that a portion took. */
  rest: (taken: number) => Promise<void>;
  onError: (error: unknown) => void;
  /** Milliseconds after which the current round of tenants is the last one, since others may have work by then. */
  maxTime?: number;
}

/**
 * Does one portion of the work of each tenant in turn, so that a long backlog does not delay the others. `portion`
 * returns whether the tenant has more. Failures are retried in the next run. Returns the tenants that have more after
 * `maxTime`.
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
