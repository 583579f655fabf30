import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { CompiledQuery } from 'kysely';
import { expect, test } from 'vitest';
import { readFacets } from '../../../src/history/search/facets.ts';
import { readHistogram } from '../../../src/history/search/histogram.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { inQuerySnapshot, type QuerySnapshot, queryAt } from '../../../src/history/search/snapshot.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { changeOf, openTestHistory } from '../../support/server/history.ts';

const tenant = 'acme';
const minute = 60_000;
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const fields = ['entity', 'type', 'actor'] as const;
/** How often each query is asked. */
const rounds = trials(1);

const random = new Random();
const history = closeAfterAll(await openTestHistory(tenant, () => now));

const hour = new Date(now - 60 * minute).toISOString();
const manyArms = Array.from({ length: 40 }, (_none, arm) => {
  const [from, to] = [now - 40 * day + arm * day, now - 40 * day + (arm + 2) * day].map((at) =>
    new Date(at).toISOString(),
  );
  return `(actor:~${arm % 10}$ occurredAt:(>="${from}" AND <"${to}"))`;
}).join(' OR ');

/** Each query as a condition on an entry `e` with its kind `k` and its actor `a`. All five ways are among them. */
const asked: [q: string, where: string][] = [
  ['', 'true'],
  ['entity:order', `k.entity = 'order'`],
  ['type:(create, delete)', `k.type <> 'update'`],
  ['compoundLogicalQuery:((type:update) OR (actor:p1))', `(k.type = 'update' or a.name = 'p1')`],
  ['actor:p1*', `a.name like 'p1%'`],
  ['entity:(order,site) actor:~[02468]$', `k.entity in ('order', 'site') and a.name ~ '[02468]$'`],
  [`occurredAt:>="${hour}"`, `e.at >= ${now - 60 * minute}`],
  ['entity:order entityId:7', `k.entity = 'order' and e.entity_id = '7'`],
  ['related.entityId:~[13]$', `e.related ~ '[13]"}'`],
  [
    'compoundLogicalQuery:((actor:p2 type:update) OR (entity:site entityId:~5))',
    `(a.name = 'p2' and k.type = 'update' or k.entity = 'site' and e.entity_id like '%5%')`,
  ],
  [
    `compoundLogicalQuery:(${manyArms}) occurredAt:>="${new Date(now - 40 * day).toISOString()}"`,
    `a.name ~ '[0-9]$' and exists (select from generate_series(0, 39::bigint) arm where a.name like '%' || arm % 10
       and e.at >= ${now - 40 * day} + arm * ${day} and e.at < ${now - 40 * day} + (arm + 2) * ${day})`,
  ],
];

function someChanges(): Change[] {
  const count = [1, 5, 90, 700][random.below(4)] ?? 1;
  const crowd = random.below(3) === 0 ? now - random.below(35 * day) : undefined;
  return Array.from({ length: count }, () => {
    const at =
      crowd === undefined
        ? now - random.below(random.below(2) === 0 ? 40 * day : 90 * minute)
        : crowd + random.below(minute);
    return changeOf({
      identity: randomBytes(16),
      at: random.below(50) === 0 ? now + 1 + random.below(day) : at,
      type: (['create', 'update', 'delete'] as const)[random.below(3)] ?? 'update',
      entity: ['order', 'site', 'quote', 'order', 'site', `many${random.below(40)}`][random.below(6)] ?? 'order',
      entityId: String(random.below(30)),
      actor: `p${random.below(random.below(4) === 0 ? 400 : 20)}`,
      related: random.below(3) === 0 ? [{ entity: 'customer', entityId: String(random.below(5)) }] : [],
    });
  });
}

/** What a plain count in the same snapshot says. */
async function check(snapshot: QuerySnapshot, q: string, where: string): Promise<void> {
  const from = `change_entry e join change_kind k using (tenant, kind) join change_actor a using (tenant, actor)
    where e.tenant = $1 and e.at >= $2 and (${where})`;
  const count = async (group: string, parameters: unknown[] = []) => {
    const text = `select ${group} as value, count(*) as count from ${from} group by 1 order by 2 desc, 1`;
    const { rows } = await snapshot.transaction.executeQuery<{ value: string; count: number }>(
      CompiledQuery.raw(text, [tenant, snapshot.since, ...parameters]),
    );
    return rows;
  };
  const histogram = await readHistogram(snapshot, { maxBuckets: [1, 24, 60, 500][random.below(4)] ?? 60 });
  const end = histogram.to + 1;
  const moments = [...histogram.buckets.map(({ at }) => at), end];
  const place = `k.type || ' ' || width_bucket(e.at, $3::bigint[]) - 1`;
  const counted = new Map((await count(place, [moments])).map(({ value, count: entries }) => [value, entries]));
  const total = counted.values().reduce((sum, entries) => sum + entries, 0);
  const after = ['create', 'update', 'delete'].map((type) => counted.get(`${type} ${moments.length - 1}`) ?? 0);
  expect({ q, total: histogram.total, after: histogram.after }).toEqual({
    q,
    total,
    after: after.reduce((sum, entries) => sum + entries, 0),
  });
  const wanted = histogram.buckets.map(({ at }, index) => {
    const [create = 0, update = 0, deleted = 0] = ['create', 'update', 'delete'].map((type) =>
      counted.get(`${type} ${index}`),
    );
    return { at, count: create + update + deleted, create, update, delete: deleted };
  });
  expect({ q, buckets: histogram.buckets }).toEqual({ q, buckets: wanted });
  const field = fields[random.below(3)] ?? 'actor';
  const size = [1, 3, 100][random.below(3)] ?? 3;
  const values = await count({ entity: 'k.entity', type: 'k.type', actor: 'a.name' }[field]);
  expect({ q, ...(await readFacets(snapshot, { field, size })) }).toEqual({
    q,
    plan: expect.any(String),
    field,
    total,
    values: values.slice(0, size),
    others: values.slice(size).reduce((sum, { count: entries }) => sum + entries, 0),
  });
}

test('buckets, facets and others are those of the snapshot while others record and fold', async () => {
  const { database, regexes } = history;
  const dictionaries = new DictionaryCache(database.pool);
  const reading = { pool: database.pool, db: database.db, regexes };
  const record = createRecorder(database.db, tenant, () => now);
  for (let batch = 0; batch < 12; batch++) await record(someChanges());
  let isDone = false;
  const writing = (async () => {
    while (!isDone) {
      await record(someChanges());
      if (random.below(3) === 0) await foldHistory(database.db, tenant);
      await sleep(20);
    }
  })();
  try {
    for (let round = 0; round < rounds; round++) {
      for (const [q, where] of asked) {
        const query = queryAt(tenant, parseQuery(q, changelogDialect), now);
        // At times without some of the names that there are by now.
        const known = dictionaries.known(tenant) ?? (await dictionaries.get(tenant));
        await inQuerySnapshot(reading, query, known, (snapshot) => check(snapshot, q, where));
      }
    }
  } finally {
    isDone = true;
    await writing;
  }
});
