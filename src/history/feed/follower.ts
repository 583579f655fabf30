import { AsyncLocalStorage } from 'node:async_hooks';
import { CompiledQuery } from 'kysely';
import { Semaphore } from '../../core/fairness/semaphore.ts';
import { doWork } from '../../core/fairness/work.ts';
import { rest } from '../../core/repeat.ts';
import type { Database } from '../../postgres/database.ts';
import { givePositions } from '../../recording/positions.ts';

interface News {
  readonly tenant: string;
  /** The newest position; null: there is none. A round may rewrite the row that has it, with the same begin. */
  readonly newest: number | null;
  /** Whether committed changes have no position yet. Not determined in a cluster, where upkeep gives positions. */
  readonly isDue: boolean;
}

/**
 * Looks for new positions of these tenants, and for changes without one, in one statement. It reads by indexes, which
 * skips folded rows that an old snapshot keeps, as `change_position_give` explains.
 */
export async function readNews(db: Database, tenants: readonly string[], isDistributed: boolean): Promise<News[]> {
  const { rows } = await db.executeQuery<News>(
    CompiledQuery.raw(isDistributed ? newsOfCluster : newsOfServer, [tenants]),
  );
  return rows;
}

const newsOfCluster = `
  select p.tenant, p.first + cardinality(p.fingerprints) - 1 as newest, false as "isDue"
    from (select c.tenant, max(c.first) as first from change_position c where c.tenant = any ($1::text[]) group by c.tenant) as last
    join change_position p on p.tenant = last.tenant and p.first = last.first
    where p.tenant = any ($1::text[])`;

const unnumbered = 'select from change_delta d where d.tenant = f.tenant and d.position is null';
const newsOfServer = `
  select f.tenant, p.newest,
         case when p.snapshot is null or p.placement is not null then exists (${unnumbered})
           else exists (${unnumbered} and d.transaction >= pg_snapshot_xmax(p.snapshot))
             or exists (select from pg_snapshot_xip(p.snapshot) as seen (id)
               cross join lateral (${unnumbered} and d.transaction = seen.id offset 0) as running)
             or exists (${unnumbered} and d.transaction is null) end as "isDue"
    from unnest($1::text[]) as f (tenant)
    left join lateral (
      select c.first + cardinality(c.fingerprints) - 1 as newest, c.snapshot, c.placement from change_position c
        where c.tenant = f.tenant order by c.first desc limit 1
    ) p on true`;

interface FollowerOptions {
  db: Database;
  isDistributed: () => Promise<boolean>;
  onError: (error: unknown) => void;
}

/**
 * Calls `onNews` whenever the tenant may have new positions, and once soon, and `onFailure` each time a look for them
 * fails. Returns a function that ends it.
 */
export type Follow = (tenant: string, onNews: () => void, onFailure?: (error: unknown) => void) => () => void;

interface FollowListener {
  onNews(): void;
  onFailure?: ((error: unknown) => void) | undefined;
}

/** Minimum milliseconds between two looks, and the rest after a look as a multiple of its duration. */
const timing = {
  server: { interval: 100, rest: 9 },
  // Each query is planned again and reaches every worker. Upkeep gives positions each half second.
  cluster: { interval: 500, rest: 49 },
};
/** Concurrent calls that give positions, one for each tenant: some may have long imports. */
const maxGiving = 4;
/** A tenant is quiet after so many calls without a result. */
const quietAfter = 5;

/** Looks for news of all tenants with listeners in one statement, and gives positions to changes without one. */
export class HistoryFollower {
  readonly #options: FollowerOptions;
  /** The first listener has work of a tenant, which this is no part of. */
  readonly #outsideOfWork = AsyncLocalStorage.snapshot();
  readonly #listeners = new Map<string, Set<FollowListener>>();
  /** The newest position at the last look. */
  readonly #newest = new Map<string, number | null>();
  readonly #giving = new Map<string, Promise<void>>();
  readonly #places = new Semaphore({ places: maxGiving, maxOfTenant: 1 });
  readonly #closed = new AbortController();
  #running: Promise<void> | undefined;
  #isDistributed: boolean | undefined;
  #isFailing = false;

  constructor(options: FollowerOptions) {
    this.#options = options;
  }

  follow(tenant: string, onNews: () => void, onFailure?: (error: unknown) => void): () => void {
    const listener = { onNews, onFailure };
    const listeners = this.#listeners.getOrInsertComputed(tenant, () => new Set()).add(listener);
    // Positions may have come since the last look at the tenant, and before the caller's own.
    this.#newest.delete(tenant);
    this.#running ??= this.#outsideOfWork(() => this.#run());
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(tenant) !== listeners) return;
      this.#listeners.delete(tenant);
      this.#newest.delete(tenant);
    };
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#running;
    await Promise.all(this.#giving.values());
  }

  async #run(): Promise<void> {
    const { signal } = this.#closed;
    while (this.#listeners.size > 0 && !signal.aborted) {
      const begun = performance.now();
      try {
        await this.#look();
        this.#isFailing = false;
      } catch (error) {
        this.#isDistributed = undefined;
        if (!this.#isFailing) this.#options.onError(error);
        this.#isFailing = true;
        // Every reader reads once after an outage: the database may have been restored.
        this.#newest.clear();
        for (const listeners of this.#listeners.values()) for (const { onFailure } of listeners) onFailure?.(error);
      }
      const { interval, rest: multiple } = this.#isDistributed === true ? timing.cluster : timing.server;
      await rest(Math.max(interval, multiple * (performance.now() - begun)), signal);
    }
    this.#running = undefined;
  }

  async #look(): Promise<void> {
    this.#isDistributed ??= await this.#options.isDistributed();
    const tenants = [...this.#listeners.keys()];
    const news = await readNews(this.#options.db, tenants, this.#isDistributed);
    const newsOf = new Map(news.map((found) => [found.tenant, found]));
    for (const tenant of tenants) this.#take(newsOf.get(tenant) ?? { tenant, newest: null, isDue: false });
  }

  #take({ tenant, newest, isDue }: News): void {
    if (!this.#listeners.has(tenant)) return;
    const isNew = this.#newest.get(tenant) !== newest;
    this.#newest.set(tenant, newest);
    if (isNew) this.#notify(tenant);
    if (!isDue || this.#giving.has(tenant)) return;
    this.#giving.set(
      tenant,
      this.#giveUntilQuiet(tenant).finally(() => this.#giving.delete(tenant)),
    );
  }

  /** Gives positions until the tenant is quiet, so that a busy one does not wait for a look at all tenants. */
  async #giveUntilQuiet(tenant: string): Promise<void> {
    const { signal } = this.#closed;
    for (let quiet = 0; quiet < quietAfter && this.#listeners.has(tenant) && !signal.aborted; quiet += 1) {
      const begun = performance.now();
      try {
        const give = () => doWork({ tenant, writes: true }, () => givePositions(this.#options.db, tenant));
        if ((await this.#places.use(tenant, signal, give)) > 0) quiet = -1;
      } catch (error) {
        if (!signal.aborted) this.#options.onError(error);
        return;
      }
      // Also where it found nothing: another process may have given them.
      this.#notify(tenant);
      await rest(Math.max(timing.server.interval, performance.now() - begun), signal);
    }
  }

  #notify(tenant: string): void {
    for (const listener of this.#listeners.get(tenant) ?? []) listener.onNews();
  }
}
