import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { unfolded } from '../../src/history/upkeep/fold.ts';
import type { Database } from '../../src/postgres/database.ts';
import { tenantsWith } from '../../src/postgres/tenants/tenants-with.ts';
import type { Seen } from './probes.ts';

/** Compares what a tenant's callers know with the rows that are there. Each line begins with ok or FAILED. */
export async function checkTenant(options: {
  pool: pg.Pool;
  db: Database;
  tenant: string;
  seen: Seen;
  /** The total that the service tells, over all time. */
  total: number;
}): Promise<string[]> {
  const { pool, db, tenant, seen, total } = options;
  while ((await tenantsWith(db, unfolded)).includes(tenant)) await sleep(200);
  const { rows } = await pool.query<{ id: string }>(
    `select substring(e.paths from '[a-z]+-[0-9]+-[0-9]+') as id
       from change_entry e join change_kind k on k.tenant = e.tenant and k.kind = e.kind
       where e.tenant = $1 and k.entity = 'order'`,
    [tenant],
  );
  const recorded = rows.map(({ id }) => id);
  const ids = new Set(recorded);
  const lost = seen.changes.filter((id) => !ids.has(id));
  const foreign = recorded.filter((id) => !id.startsWith(`${tenant}-`));
  const { rows: kept } = await pool.query<{ key: string }>('select key from configuration where tenant = $1', [tenant]);
  const keys = new Set(kept.map(({ key }) => key));
  const lostKeys = seen.keys.filter((key) => !keys.has(key));
  const { rows: counted } = await pool.query<{ entries: number }>(
    'select count(*)::integer as entries from change_entry where tenant = $1',
    [tenant],
  );
  const line = (isRight: boolean, text: string) => `${isRight ? 'ok' : 'FAILED'} ${tenant}: ${text}`;
  const entries = Number(counted[0]?.entries);
  return [
    line(lost.length === 0, `${seen.changes.length} changes acknowledged, ${lost.length} of them lost`),
    line(ids.size === recorded.length, `${recorded.length - ids.size} of ${recorded.length} changes doubled`),
    line(
      foreign.length + seen.foreign.length === 0,
      `${foreign.length} stored and ${seen.foreign.length} served of others`,
    ),
    line(
      lostKeys.length === 0,
      `${seen.keys.length} of ${seen.unknownKeys.length} writes acknowledged, ${lostKeys.length} lost`,
    ),
    line(total === entries, `the total of the service is ${total}, a plain count ${entries}`),
  ];
}
