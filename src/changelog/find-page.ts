import type pg from 'pg';
import { unlessAborted, withDeadline } from '../concurrency/deadline.ts';
import { Semaphore } from '../concurrency/semaphore.ts';
import type { Database } from '../db/database.ts';
import { stoppablePool } from '../db/stoppable.ts';
import type { Query } from '../query/ast.ts';
import type { RegexMatcherPool } from '../query/regex-pool.ts';
import type { StopSignal } from '../stop-signal.ts';
import { DictionaryCache } from './names/dictionary-cache.ts';
import type { PageQuery, Reading } from './read/page-query.ts';
import { readInSingleStatement } from './read/single-statement.ts';
import { readInSnapshot } from './read/snapshot-page.ts';
import type { PageOfEntries } from './read/store.ts';
import { defaultWindowFrom, hasFromBound } from './window.ts';

export interface AskedPage {
  skip: number;
  size: number;
  /** Aborted when the client has gone: Annals cancels the query, and the promise rejects with the signal's reason. */
  signal?: StopSignal | undefined;
  /** Whether a page with much text may come as `pieces`. Without, a page with more than 64 MiB is a 400. */
  inPieces?: boolean;
}

/**
 * Finds a page of the entries that satisfy a query: `size` entries after the first `skip`, newest first, and how many there
 * are in all. Both are of one snapshot of the database. Rejects with an AnnalsError: service_unavailable when the query
 * takes too long, validation_violation when a regular expression passes its budget or the page has too much text.
 *
 * @example
 * const query = parseQuery('entity:order type:delete', changelogDialect);
 * const { total, entries } = await findPage('acme', query, { skip: 0, size: 20 });
 */
export type FindPage = (tenant: string, query: Query, page: AskedPage) => Promise<PageOfEntries>;

interface FindPageOptions {
  pool: pg.Pool;
  db: Database;
  regexes: RegexMatcherPool;
  now: () => number;
  /** Names that other parts of the process share; left out: a cache of its own. */
  dictionaries?: DictionaryCache;
  /** Milliseconds that a query may take, waiting included; left out: 30 seconds. */
  timeLimit?: number;
}

// New names come seldom. If so many reads in a row find new ones, they are read in the snapshot that answers.
const maxAttempts = 3;
const defaultTimeLimit = 30_000;
/** Queries that may take long leave connections to all others, and those of one tenant leave some to other tenants. */
const longQueries = { places: 6, name: 'queries that take long' };

export function createFindPage(options: FindPageOptions): FindPage {
  const { pool, db, regexes, now, timeLimit = defaultTimeLimit } = options;
  const { dictionaries = new DictionaryCache(pool) } = options;
  const semaphore = new Semaphore(longQueries);

  return async (tenant, query, { skip, size, signal: gone, inPieces = false }) => {
    const moment = now();
    const from = hasFromBound(query) ? 0 : Math.max(0, defaultWindowFrom(moment));
    const page: PageQuery = { tenant, query, from, now: moment, skip, size, inPieces };
    return await withDeadline(timeLimit, gone, async (signal) => {
      const statements = stoppablePool(pool, signal);
      const reading: Reading = { pool, db, statements, regexes, semaphore, signal, timeLimit };
      let dictionary = dictionaries.known(tenant) ?? (await unlessAborted(dictionaries.get(tenant), signal));
      for (let attempt = 0; attempt < maxAttempts; attempt++) {
        const read = await readInSingleStatement(reading, page, dictionary);
        if (read.kind === 'page') return { total: read.total, entries: read.entries };
        if (read.kind === 'several statements') break;
        dictionary = await unlessAborted(dictionaries.get(tenant, dictionary), signal);
      }
      return await readInSnapshot(reading, page, dictionary);
    });
  };
}
