import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { createHistoryReads } from '../../src/history/history-reads.ts';
import type { FacetField } from '../../src/history/search/count-store.ts';
import { createFindPage } from '../../src/history/search/find-page.ts';
import { DictionaryCache } from '../../src/history/search/names/dictionary-cache.ts';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { RegexMatcherPool } from '../../src/query/regex-pool.ts';

// What a histogram of 60 buckets by type, and facets, cost: beside the totals that a client would ask for instead, and beside
// plain SQL's "group by" on one table with the best index.
const { values: settings } = parseArgs({
  options: {
    entries: { type: 'string', default: '600000' },
    kinds: { type: 'string', multiple: true, default: ['10', '100', '1000'] },
    /** With fewer than 8,000 actors, one of them has two fifths of the entries, and the others are dense. */
    actors: { type: 'string', default: '8000' },
    rounds: { type: 'string', default: '5' },
    /** Makes the data and measures nothing. */
    prepare: { type: 'boolean', default: false },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
  },
});

const tenant = 'big';
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** The entries are spread over so many days before now. */
const days = 60;
const defaultActors = 8_000;
const actors = Number(settings.actors);
const isDense = actors < defaultActors;
const types = ['create', 'update', 'delete'];

interface Row {
  row: string;
  q: string;
  /** On the table `plain`. */
  where: string;
  days: number;
}

const since = (count: number) => new Date(now - count * day).toISOString();
const names = Array.from({ length: 100 }, (_none, index) => `name${index}`);
const rows: Row[] = [
  { row: 'no filter, 30 days', q: '', where: 'true', days: 30 },
  { row: 'no filter, 60 days', q: `occurredAt:>="${since(60)}"`, where: 'true', days: 60 },
  { row: 'one entity, 30 days', q: 'entity:entity1', where: "entity = 'entity1'", days: 30 },
  { row: '100 names, 30 days', q: `actor:(${names.join(',')})`, where: `actor in ('${names.join("', '")}')`, days: 30 },
  { row: 'no filter, 24 hours', q: `occurredAt:>="${since(1)}"`, where: 'true', days: 1 },
];
const actorRows: Row[] = [
  { row: '100 names, 30 days', q: `actor:(${names.join(',')})`, where: `actor in ('${names.join("', '")}')`, days: 30 },
  { row: 'actor with 40 %, 30 days', q: 'actor:name0', where: "actor = 'name0'", days: 30 },
  {
    row: 'actor with 40 %, 24 hours',
    q: `actor:name0 occurredAt:>="${since(1)}"`,
    where: "actor = 'name0'",
    days: 1,
  },
  { row: 'ordinary actor, 30 days', q: 'actor:name50', where: "actor = 'name50'", days: 30 },
  {
    row: 'actor with 40 % and a type, 30 days',
    q: 'actor:name0 type:update',
    where: "actor = 'name0' and type = 'update'",
    days: 30,
  },
  {
    row: '100 names and a type, 30 days',
    q: `actor:(${names.join(',')}) type:update`,
    where: `actor in ('${names.join("', '")}') and type = 'update'`,
    days: 30,
  },
];

const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir: settings.data, log: (line: string) => process.stderr.write(`${line}\n`) });
try {
  const lines: string[] = [];
  for (const kinds of settings.kinds.map(Number)) {
    const pool = await openData(embedded.url, Number(settings.entries), kinds);
    if (!settings.prepare) lines.push(...(await measure(pool, kinds)));
    await pool.end();
  }
  if (!settings.prepare) {
    process.stdout.write(
      '| kinds | query | matches | histogram, ms | 61 totals of each type / histogram | plain SQL / histogram | facets by actor, ms | plain SQL / facets by actor | facets by type, ms | plain SQL / facets by type | facets by entity, ms | plain SQL / facets by entity |\n' +
        `|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n${lines.join('\n')}\n`,
    );
  }
} finally {
  await embedded.release();
}

async function openData(url: string, entries: number, kinds: number): Promise<pg.Pool> {
  const name = `annals_bench_summary_${entries}_${kinds}${isDense ? `_${actors}` : ''}`;
  const target = new URL(url);
  target.pathname = name;
  const server = createPool(url, { maximum: 1 });
  const { rows: found } = await server.query('select from pg_database where datname = $1', [name]);
  if (found.length === 0) {
    const draft = new URL(url);
    draft.pathname = `${name}_draft`;
    await server.query(`drop database if exists ${name}_draft with (force)`);
    await server.query(`create database ${name}_draft`);
    await fill(draft.href, entries, kinds);
    await server.query(`alter database ${name}_draft rename to ${name}`);
  }
  await server.end();
  const pool = createPool(target.href, { maximum: 5 });
  await migrate(pool);
  return pool;
}

/** Entries as they come: most of few kinds and of few people, more by day than by night. */
async function fill(url: string, entries: number, kinds: number): Promise<void> {
  const pool = createPool(url, { maximum: 2 });
  const db = createDatabase(pool);
  await migrate(pool);
  await pool.query('insert into tenant (tenant) values ($1)', [tenant]);
  await pool.query(
    `insert into change_kind (tenant, lookup, entity, type, related_entities)
       select $1, md5('k' || i)::uuid, 'entity' || i / 3, ($2::text[])[1 + i % 3], '{}' from generate_series(0, $3 - 1) i`,
    [tenant, types, kinds],
  );
  await pool.query(
    `insert into change_actor (tenant, lookup, name) select $1, md5('a' || i)::uuid, 'name' || i from generate_series(0, $2 - 1) i`,
    [tenant, actors],
  );
  await pool.query('select setseed(0.5)');
  await pool.query(
    `insert into change_entry (tenant, at, kind, actor, document, identity, entity_id, paths, recorded_by)
       select $1, $2::bigint - (random() * $3)::bigint, k.ids[1 + floor(cardinality(k.ids) * random() * random())::integer],
              a.ids[case when $5 and random() < 0.4 then 1 else 1 + floor(cardinality(a.ids) * random() * random())::integer end],
              md5('d' || i / 7)::uuid, md5('i' || i)::uuid, 'd' || i / 7, '{"a":{"after":1}}', null
         from generate_series(1, $4::bigint) i,
              (select array_agg(kind order by kind) as ids from change_kind) k, (select array_agg(actor order by actor) as ids from change_actor) a`,
    [tenant, now, days * day, entries, isDense],
  );
  await pool.query(
    `insert into change_delta (tenant, ats, sequences, kinds, actors)
       select $1, array_agg(at), array_agg(sequence), array_agg(kind), array_agg(actor) from change_entry group by sequence / 5000`,
    [tenant],
  );
  await foldHistory(db, tenant);
  await pool.query(
    `create table plain as
       select e.tenant, to_timestamp(e.at / 1000.0) as at, k.type, k.entity, a.name as actor, e.entity_id, e.paths
         from change_entry e join change_kind k using (tenant, kind) join change_actor a using (tenant, actor) order by e.at`,
  );
  await pool.query(
    'create index on plain (tenant, at) include (type); create index on plain (tenant, entity, at) include (type)',
  );
  await pool.query('create index on plain (tenant, actor text_pattern_ops, at) include (type)');
  await pool.query('vacuum (analyze)');
  await db.destroy();
}

async function measure(pool: pg.Pool, kinds: number): Promise<string[]> {
  const db = createDatabase(pool);
  const regexes = new RegexMatcherPool();
  const history = { pool, db, regexes, now: () => now, dictionaries: new DictionaryCache(pool) };
  const reads = createHistoryReads(history);
  const findPage = createFindPage(history);
  const lines: string[] = [];
  for (const row of isDense ? actorRows : rows) {
    const query = parseQuery(row.q, changelogDialect);
    const { total, interval, buckets } = await reads.histogram(tenant, query, { maxBuckets: 60 });
    const length = (interval.unit === 'day' ? day : interval.unit === 'hour' ? 3_600_000 : 60_000) * interval.count;
    const boundaries = buckets.map(({ at }) => new Date(Math.max(at, now - row.days * day)).toISOString());
    const totals = async () => {
      for (const type of types) {
        for (const boundary of boundaries) {
          const text = `${row.q.replace(/ ?occurredAt\S+/, '')} type:${type} occurredAt:>="${boundary}"`;
          await findPage(tenant, parseQuery(text.trim(), changelogDialect), { skip: 0, size: 1 });
        }
      }
    };
    const condition = `tenant = $1 and at >= '${since(row.days)}' and ${row.where}`;
    const grouped = () =>
      pool.query(
        `select type, floor(extract(epoch from at) * 1000 / ${length}) as bucket, count(*) from plain where ${condition} group by 1, 2`,
        [tenant],
      );
    const byField = (field: string) => () =>
      pool.query(`select ${field}, count(*) from plain where ${condition} group by 1 order by 2 desc, 1 limit 20`, [
        tenant,
      ]);
    const facetsBy = (field: FacetField) => () => reads.facets(tenant, query, { field, size: 20 });
    const columns = {
      histogram: () => reads.histogram(tenant, query, { maxBuckets: 60 }),
      totals,
      grouped,
      actorFacets: facetsBy('actor'),
      byActor: byField('actor'),
      typeFacets: facetsBy('type'),
      byType: byField('type'),
      entityFacets: facetsBy('entity'),
      byEntity: byField('entity'),
    };
    const milliseconds = new Map<string, number[]>();
    for (let round = 0; round < Number(settings.rounds); round++) {
      for (const [name, ask] of Object.entries(columns)) {
        if (name === 'totals' && round > 0) continue;
        const begun = performance.now();
        await ask();
        milliseconds.set(name, [...(milliseconds.get(name) ?? []), performance.now() - begun]);
      }
    }
    const median = (name: string) => {
      const sorted = (milliseconds.get(name) ?? []).toSorted((one, other) => one - other);
      return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
    };
    const histogram = median('histogram');
    const beside = (own: string, plain: string) =>
      `${median(own).toFixed(1)} | ${(median(plain) / median(own)).toFixed(1)}`;
    lines.push(
      `| ${kinds} | ${row.row}, ${buckets.length} buckets | ${total.toLocaleString('en')} | ${histogram.toFixed(1)} | ` +
        `${(median('totals') / histogram).toFixed(1)} | ${(median('grouped') / histogram).toFixed(1)} | ` +
        `${beside('actorFacets', 'byActor')} | ${beside('typeFacets', 'byType')} | ${beside('entityFacets', 'byEntity')} |`,
    );
    process.stderr.write(`${lines.at(-1)} plain ${median('grouped').toFixed(0)} ms\n`);
  }
  return lines;
}
