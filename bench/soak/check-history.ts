import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { unfolded } from '../../src/history/upkeep/fold.ts';
import type { Database } from '../../src/postgres/database.ts';
import { tenantsWith } from '../../src/postgres/tenants/tenants-with.ts';
import type { Acknowledged, Session } from './clients.ts';

/** Compares what was acknowledged, and the totals that the service tells, with plain counts of the rows. */
export async function checkHistory(options: {
  pool: pg.Pool;
  db: Database;
  session: Session;
  tenant: string;
  acknowledged: Acknowledged;
  /** Whether nothing was dropped by retention. */
  keepsAll: boolean;
}): Promise<string[]> {
  const { pool, db, session, tenant, acknowledged, keepsAll } = options;
  while ((await tenantsWith(db, unfolded)).includes(tenant)) await sleep(200);
  const count = async (condition: string) => {
    const { rows } = await pool.query<{ count: number }>(
      `select count(*) as count from change_entry e
         join change_kind k on k.tenant = e.tenant and k.kind = e.kind
         where e.tenant = $1 and e.at >= coalesce((select horizon from change_retention r where r.tenant = $1), 0)
           and ${condition}`,
      [tenant],
    );
    return Number(rows[0]?.count);
  };
  const lines: string[] = [];
  const same = (what: string, one: number, other: number) =>
    lines.push(`${one === other ? 'ok' : 'FAILED'} ${tenant}: ${what}: ${one} = ${other}`);

  const allTime = 'occurredAt:>="1970-01-01T00:00:00Z"';
  const queries: Record<string, string> = {
    '': 'true',
    'entity:order': "k.entity = 'order'",
    'entity:BOX type:update': "k.entity = 'BOX' and k.type = 'update'",
  };
  for (const [q, condition] of Object.entries(queries)) {
    const path = `/changelog/${tenant}/changelogs?size=1&q=${encodeURIComponent(`${q} ${allTime}`)}`;
    const answer = await session.call('total', path);
    const { totalElements } = JSON.parse(answer?.text ?? '{}') as { totalElements: number };
    same(`total of "${q}"`, totalElements, await count(condition));
  }
  const { rows } = await pool.query<{ id: string }>(
    `select substring(e.paths from '(?:one|two)-[0-9]+-[0-9]+') as id
       from change_entry e join change_kind k on k.tenant = e.tenant and k.kind = e.kind
       where e.tenant = $1 and k.entity = 'order'`,
    [tenant],
  );
  const recorded = rows.map(({ id }) => id);
  const sent = new Set(acknowledged.changes);
  same('changes of the recorder, each once', recorded.length, new Set(recorded).size);
  same('changes that nobody sent', recorded.filter((id) => !sent.has(id)).length, 0);
  if (keepsAll) same('changes that were acknowledged', sent.size, recorded.length);
  else lines.push(`-- ${tenant}: ${sent.size} changes were acknowledged, ${recorded.length} are kept`);

  const { writes, unknownWrites, chats, exports } = acknowledged;
  const written = await count("k.entity = 'BOX'");
  const isBetween = written >= writes && written <= writes + unknownWrites;
  lines.push(
    `${isBetween ? 'ok' : 'FAILED'} ${tenant}: writes of instances: ${writes} acknowledged, ${unknownWrites} unknown, ${written} recorded`,
  );
  const logs = await pool.query<{ count: number }>(
    'select count(*) as count from agent_request_log where tenant = $1',
    [tenant],
  );
  const logged = Number(logs.rows[0]?.count);
  lines.push(`${logged >= chats ? 'ok' : 'FAILED'} ${tenant}: chats: ${chats} answered, ${logged} in the log`);
  lines.push(`-- ${tenant}: exports: ${exports}`);
  return lines;
}
