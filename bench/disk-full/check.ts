import { setTimeout as sleep } from 'node:timers/promises';
import { unfolded } from '../../src/history/upkeep/fold.ts';
import { tenantsWith } from '../../src/postgres/tenants/tenants-with.ts';
import type { BenchDatabase } from '../server.ts';
import { type Caller, Session } from './clients.ts';

/** Compares what was acknowledged, and the totals of the service, with plain counts of the rows. */
export async function check({ pool, db }: BenchDatabase, caller: Caller): Promise<string[]> {
  const { tenant, acknowledged } = caller;
  const session = new Session(caller);
  while ((await tenantsWith(db, unfolded)).includes(tenant)) await sleep(200);
  const lines: string[] = [];
  const verdict = (isRight: boolean, text: string) => lines.push(`${isRight ? 'ok' : 'FAILED'} ${tenant}: ${text}`);
  const count = async (text: string) =>
    Number((await pool.query(`select count(*) from ${text}`, [tenant])).rows[0]?.count);
  const kept = `change_entry e join change_kind k using (tenant, kind)
    where tenant = $1 and e.at >= coalesce((select horizon from change_retention where tenant = $1), 0)`;

  for (const [q, condition] of Object.entries({
    '': 'true',
    'entity:order': "entity = 'order'",
    'entity:BOX type:update': "entity = 'BOX' and type = 'update'",
  })) {
    const query = encodeURIComponent(`${q} occurredAt:>="1970-01-01T00:00:00Z"`);
    const answer = await session.call('total', `/changelog/${tenant}/changelogs?size=1&q=${query}`);
    const { totalElements } = JSON.parse(answer?.text ?? '{}') as { totalElements: number };
    const entries = await count(`${kept} and ${condition}`);
    verdict(totalElements === entries, `the total of "${q}" is ${totalElements}, a plain count ${entries}`);
  }
  const { rows } = await pool.query<{ id: string }>(
    `select substring(e.paths from '(?:one|two)-[0-9]+-[0-9]+') as id
       from change_entry e join change_kind k using (tenant, kind) where tenant = $1 and k.entity = 'order'`,
    [tenant],
  );
  const [recorded, sent] = [new Set(rows.map(({ id }) => id)), new Set(acknowledged.changes)];
  const unknown = recorded.difference(sent).size;
  const lost = sent.difference(recorded).size;
  verdict(recorded.size === rows.length, `${rows.length - recorded.size} of ${rows.length} changes doubled`);
  verdict(unknown === 0, `${unknown} changes that were not sent`);
  verdict(lost === 0, `${sent.size} changes acknowledged, ${lost} of them missing`);
  const { writes, unknownWrites, chats } = acknowledged;
  const written = await count(`${kept} and entity = 'BOX'`);
  const isBetween = written >= writes && written <= writes + unknownWrites;
  verdict(isBetween, `${writes} writes acknowledged, ${unknownWrites} unknown, ${written} recorded`);
  const logged = await count('agent_request_log where tenant = $1');
  verdict(logged >= chats, `${chats} chats answered, ${logged} in the log`);
  return lines;
}
