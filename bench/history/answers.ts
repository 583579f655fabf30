import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import * as fc from 'fast-check';
import type pg from 'pg';
import { historyBody } from '../../src/history/entries/entry-text.ts';
import { createHistoryReads } from '../../src/history/history-reads.ts';
import { createFindPage } from '../../src/history/search/find-page.ts';
import { calendarOf } from '../../src/history/search/histogram.ts';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase, type Database } from '../../src/postgres/database.ts';
import { distribute } from '../../src/postgres/migrate/distribute.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../src/query/parse.ts';
import { RegexMatcherPool } from '../../src/query/regex-pool.ts';
import type { Change } from '../../src/recording/change.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { arbitraryPaths, hardPaths } from '../../test/support/oracle/path-arbitrary.ts';
import { arbitraryQuery, hardExpressions, hardNames } from '../../test/support/oracle/query-arbitrary.ts';
import { Random } from '../../test/support/oracle/random.ts';
import { clusterOfEnvironment, createClusterDatabase, dropOnCluster } from '../../test/support/server/cluster.ts';
import { openBenchServer } from '../server.ts';

// Writes a hash of every answer to random queries on the same data: to compare two versions, or a cluster with one
// server, byte for byte.
const { values: settings } = parseArgs({
  options: {
    random: { type: 'string', default: '3000' },
    seed: { type: 'string', default: '7' },
    out: { type: 'string', default: 'answers.json' },
    /** The file of another version. The run fails where an answer differs. */
    compare: { type: 'string' },
  },
});

const tenant = 'answers';
const minute = 60_000;
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const size = 20;
const people = Array.from({ length: 300 }, (_none, index) => `name${index}`);
const entities = Array.from({ length: 25 }, (_none, index) => `entity${index}`);
const vocabulary = {
  entities: [...entities.slice(0, 6), ...hardNames.slice(0, 12)],
  entityIds: [...Array.from({ length: 20 }, (_none, index) => `d${index}`), ...hardNames.slice(0, 8)],
  actors: [...people.slice(0, 6), ...hardNames.slice(0, 20)],
  paths: hardPaths,
  expressions: [...hardExpressions, '^name[0-9]$', '[02468]$', '^d1'],
  times: [now, now - 3 * day, now - 3 * day - 17 * minute, now - 30 * day, now - 45 * day],
};

/** The names that most entries have. */
const frequent = { ...vocabulary, entities, actors: people };

// Distributed where CITUS_DATABASE_URL and CITUS_WORKERS name a cluster.
const cluster = clusterOfEnvironment(process.env);
if (cluster === undefined) {
  const server = await openBenchServer();
  const database = await server.create();
  await writeAnswers(database.pool);
  await database.drop();
  await server.release();
} else {
  const name = `annals_bench_answers_${process.pid}`;
  const pool = createPool(await createClusterDatabase(cluster, name), { maximum: 5 });
  await distribute(pool, { shards: 4 });
  await writeAnswers(pool);
  await pool.end();
  await dropOnCluster(cluster, name);
}

async function writeAnswers(pool: pg.Pool): Promise<void> {
  const answers = await answersOf(pool);
  await writeFile(settings.out, JSON.stringify(answers, null, 1));
  if (settings.compare !== undefined) await compare(answers, settings.compare);
}

async function answersOf(pool: pg.Pool): Promise<Record<string, string>> {
  const db = createDatabase(pool);
  await createTenant(db, tenant);
  await record(db);
  const regexes = new RegexMatcherPool();
  const history = { pool, db, regexes, now: () => now };
  const findPage = createFindPage(history);
  const reads = createHistoryReads(history);
  const draw = (words: typeof vocabulary, numRuns: number) =>
    fc.sample(arbitraryQuery(words), { numRuns, seed: Number(settings.seed) }).map((query) => query.text);
  const drawn = [...draw(frequent, 300), ...draw(vocabulary, Number(settings.random))];
  const answers: Record<string, string> = {};
  for (const [place, q] of ['', ...drawn].entries()) {
    const query = parseQuery(q, changelogDialect);
    const page = async (number: number) => {
      const found = await findPage(tenant, query, { skip: (number - 1) * size, size });
      const body = historyBody(found, { page: number, size });
      return { total: found.total, body: typeof body === 'string' ? body : await text(body) };
    };
    const first = await page(1);
    const last = Math.max(1, Math.ceil(first.total / size));
    const parts = [first.body, (await page(Math.ceil(last / 2))).body, (await page(last)).body];
    for (const [maxBuckets, timeZone] of [
      [60, undefined],
      [1 + (place % 499), 'Europe/Berlin'],
    ] as const) {
      const calendar = timeZone === undefined ? undefined : calendarOf(timeZone);
      parts.push(JSON.stringify(await reads.histogram(tenant, query, { maxBuckets, calendar })));
    }
    for (const field of ['entity', 'type', 'actor', 'path'] as const) {
      parts.push(JSON.stringify(await reads.facets(tenant, query, { field, size: 1 + (place % 20) })));
    }
    const hashes = parts.map((part) => createHash('sha256').update(part).digest('hex').slice(0, 16));
    answers[`${place} ${q}`] = `${first.total} ${hashes.join(' ')}`;
  }
  return answers;
}

/** Entries as they come, with a crowded hour and dense actors. All but the last batch are folded. */
async function record(db: Database): Promise<void> {
  const random = new Random(7);
  const recorder = createRecorder(db, tenant, () => now);
  const skewed = <Item>(items: readonly Item[]) => items[Math.floor(items.length * random.next() * random.next())];
  const timeOf = () => {
    const kind = random.below(10);
    if (kind === 0) return now - random.below(1_500 * day);
    if (kind === 1) return now - 3 * day - random.below(60 * minute);
    if (kind === 2) return now - 3 * day - 17 * minute - random.below(1_000);
    if (kind === 3) return now - random.below(60) * day;
    return now - random.below(60 * day);
  };
  const paths = fc.sample(arbitraryPaths(), { numRuns: 2_000, seed: 7 });
  let number = 0;
  for (let batch = 0; batch < 15; batch++) {
    const changes: Change[] = Array.from({ length: 2_000 }, () => {
      number += 1;
      const isHard = random.below(12) === 0;
      return {
        identity: createHash('md5').update(String(number)).digest(),
        at: timeOf(),
        type: skewed(['update', 'create', 'delete'] as const) ?? 'update',
        entity: (isHard ? random.pick(vocabulary.entities) : skewed(entities)) ?? 'order',
        entityId: isHard ? random.pick(vocabulary.entityIds) : `d${random.below(900)}`,
        actor: (isHard ? random.pick(vocabulary.actors) : random.below(4) === 0 ? 'name0' : skewed(people)) ?? 'x',
        related: random.below(8) === 0 ? [{ entity: 'group', entityId: `d${random.below(20)}` }] : [],
        paths: paths[number % paths.length] ?? '{}',
      };
    });
    await recorder(changes);
    if (batch < 14) await foldHistory(db, tenant, 3_000);
  }
}

async function compare(answers: Record<string, string>, file: string): Promise<void> {
  const expected = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>;
  const names = new Set([...Object.keys(answers), ...Object.keys(expected)]);
  const different = [...names].filter((query) => answers[query] !== expected[query]);
  for (const query of different.slice(0, 20)) {
    process.stdout.write(`${query}\n  ${expected[query]}\n  ${answers[query]}\n`);
  }
  process.stdout.write(`${names.size} queries, ${different.length} different answers\n`);
  if (different.length > 0) process.exitCode = 1;
}
