import { changelogDialect } from '../../../src/history/ask/dialect.ts';
import { createFindPage } from '../../../src/history/find-page.ts';
import { createHistoryReads } from '../../../src/history/history-reads.ts';
import { DictionaryCache } from '../../../src/history/names/dictionary-cache.ts';
import { createPool } from '../../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../../src/postgres/database.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { Backends, type Cost, costOf, quantile } from '../processor-time.ts';
import { type SizeQuestion, sizeQuestions } from './questions.ts';

const size = 20;
const buckets = 60;

/** What a class of queries costs: milliseconds of processor time, and how many entries match, at the median. */
export interface Asked {
  row: string;
  read: string;
  matches: number;
  service: number;
  database: number;
  /** Service and database together: the most of one query. */
  worst: number;
  /** Milliseconds by the clock, at the median. */
  clock: number;
}

/** Asks so many queries of each class, each query once, and checks that the whole history has `entries` entries. */
export async function askAll(
  { url, tenant, now }: { url: string; tenant: string; now: number },
  { entries, times }: { entries: number; times: number },
): Promise<Asked[]> {
  const backends = new Backends();
  const pool = createPool(url, { maximum: 4 });
  backends.addPool(pool);
  const db = createDatabase(pool);
  const regexes = new RegexMatcherPool();
  const history = { pool, db, regexes, now: () => now, dictionaries: new DictionaryCache(pool) };
  const findPage = createFindPage(history);
  const reads = createHistoryReads(history);
  const parse = (q: string) => parseQuery(q, changelogDialect);
  const totalOf = async (q: string) => (await findPage(tenant, parse(q), { skip: 0, size: 1 })).total;

  async function ask({ read, q }: SizeQuestion, number: number): Promise<{ matches: number; cost: Cost }> {
    const query = q(number);
    let matches = 0;
    // A middle page needs its total first, of a query that differs a little, so that nothing is asked twice.
    const skip = read === 'middle page' ? Math.floor((await totalOf(q(number + 1000))) / 2) : 0;
    const cost = await costOf(backends, async () => {
      if (read === 'histogram') matches = (await reads.histogram(tenant, parse(query), { maxBuckets: buckets })).total;
      else matches = (await findPage(tenant, parse(query), { skip, size: read === 'total' ? 1 : size })).total;
    });
    return { matches, cost };
  }

  try {
    const found = await totalOf('occurredAt:>="1970-01-01T00:00:00Z"');
    if (found !== entries) throw new Error(`the history has ${found} entries of ${entries}`);
    const { rows } = await pool.query<{ name: string }>(
      'select name from change_actor where tenant = $1 order by md5(name)',
      [tenant],
    );
    const asked: Asked[] = [];
    for (const question of sizeQuestions({ now, actors: rows.map(({ name }) => name) })) {
      const answers: { matches: number; cost: Cost }[] = [];
      // The first two make code and plans warm, and do not count.
      for (let number = -2; number < times; number++) {
        const answer = await ask(question, number + 2);
        if (number >= 0) answers.push(answer);
      }
      asked.push(summary(question, answers));
    }
    return asked;
  } finally {
    await regexes.close();
    await db.destroy();
  }
}

function summary({ row, read }: SizeQuestion, answers: readonly { matches: number; cost: Cost }[]): Asked {
  const median = (of: (answer: { matches: number; cost: Cost }) => number) => quantile(answers.map(of), 0.5);
  return {
    row,
    read,
    matches: median(({ matches }) => matches),
    service: median(({ cost }) => cost.service),
    database: median(({ cost }) => cost.database),
    worst: Math.max(...answers.map(({ cost }) => cost.service + cost.database)),
    clock: median(({ cost }) => cost.clock),
  };
}
