import { randomUUID } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import { sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import { doWork } from '../../core/fairness/work.ts';
import { GrowingPause, keepLease, rest } from '../../core/repeat.ts';
import type { Sealer } from '../../core/sealing.ts';
import { Stop } from '../../core/stop-signal.ts';
import type { Database } from '../../postgres/database.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import type { HistoryToDeliver } from '../changes.ts';
import type { SubscriptionDocument } from '../subscriptions/schemas.ts';
import { openSecrets, withSecrets } from '../subscriptions/secrets.ts';
import { activeSubscriptions, stopSubscription } from '../subscriptions/store.ts';
import type { Target } from '../targets/target.ts';
import { DeliveryRun, RunEnded, type Runner, type RunOptions } from './delivery-run.ts';
import {
  dueSubscriptions,
  extendLease,
  type LeasedSubscription,
  lease,
  leaseDue,
  pauseRestored,
  release,
} from './run-store.ts';

/** Whether a client still has the scopes to deliver; `readsContext`: also those that read contexts. */
type MayDeliver = (tenant: string, clientId: string, options: { readonly readsContext: boolean }) => Promise<boolean>;

/** Tenants per statement. */
const maxTenants = 200;

/** Pauses the subscriptions of these tenants whose maker lost the required scopes. */
async function pauseOrphans(
  { db, history, mayDeliver }: Pick<DispatcherOptions, 'db' | 'history' | 'mayDeliver'>,
  tenants: readonly string[],
): Promise<void> {
  for (let first = 0; first < tenants.length; first += maxTenants) {
    const running = await readRunning(db, tenants.slice(first, first + maxTenants));
    const allowed = new Map<string, Promise<boolean>>();
    for (const { tenant, id, maker, document } of running) {
      const readsContext = document !== null && usesContext(history, document);
      const may = await allowed.getOrInsertComputed(`${maker} ${readsContext}`, () =>
        mayDeliver(tenant, maker, { readsContext }),
      );
      if (!may) await stopSubscription(db, tenant, id, { state: 'paused', reason: 'maker' });
    }
  }
}

function usesContext(history: HistoryToDeliver, document: string): boolean {
  return history.usesContext((JSON.parse(document) as SubscriptionDocument).q);
}

interface RunningSubscription {
  readonly tenant: string;
  readonly id: string;
  readonly maker: string;
  /** JSON text; null if its query has no term on contexts. */
  readonly document: string | null;
}

async function readRunning(db: Database, tenants: readonly string[]): Promise<RunningSubscription[]> {
  const { rows } = await sql<RunningSubscription>`
    select s.tenant, s.id, s.maker, case when strpos(s.document, 'context.') > 0 then s.document end as document
      from subscription s join subscription_state t on t.tenant = s.tenant and t.subscription = s.id
      where s.tenant = any (${tenants}::text[]) and t.state in ('active', 'retrying')`.execute(db);
  return rows;
}

interface Failure {
  readonly pause: GrowingPause;
  rests: boolean;
}

/**
 * Subscriptions whose last run in this process failed because of this service. Such runs may send the same changes
 * again, so their pause grows.
 */
class FailedRuns {
  readonly #pauses: { readonly min: number; readonly max: number };
  readonly #failures = new Map<string, Map<string, Failure>>();

  /** Pauses in milliseconds. */
  constructor(pauses: { readonly min: number; readonly max: number }) {
    this.#pauses = pauses;
  }

  /** Subscriptions of the tenant that must not be leased now, even if their leases have expired. */
  resting(tenant: string): string[] {
    return [...(this.#failures.get(tenant) ?? [])].flatMap(([id, { rests }]) => (rests ? [id] : []));
  }

  /** Records a failed run. Returns its pause in milliseconds, and a function that waits for it or for the signal. */
  failed(tenant: string, id: string): { pause: number; rest(signal: AbortSignal): Promise<void> } {
    const ofTenant = this.#failures.getOrInsertComputed(tenant, () => new Map());
    const failure = ofTenant.getOrInsertComputed(id, () => ({ pause: new GrowingPause(this.#pauses), rests: false }));
    failure.rests = true;
    const pause = failure.pause.next();
    return {
      pause,
      async rest(signal) {
        await rest(pause, signal);
        failure.rests = false;
      },
    };
  }

  succeeded(tenant: string, id: string): void {
    const ofTenant = this.#failures.get(tenant);
    ofTenant?.delete(id);
    if (ofTenant?.size === 0) this.#failures.delete(tenant);
  }
}

/** Delivers the subscriptions of all tenants. Several processes may run one. */
export interface Dispatcher {
  start(findTenants: FindTenants): void;
  /** Ends all runs. Deliveries in flight are repeated later. */
  close(): Promise<void>;
}

export interface DispatcherOptions extends RunOptions {
  readonly sealer: Sealer;
  readonly logger: FastifyBaseLogger;
  readonly targets: readonly Target[];
  readonly runnerOf: (target: Target) => Runner;
  readonly mayDeliver: MayDeliver;
}

// Milliseconds.
const pollInterval = 250;
const makersInterval = 2_000;
/** Backoff after a run that failed because of this service. */
const errorPauses = { min: 5_000, max: 5 * 60_000 };

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { db, history, logger, sealer, targets } = options;
  const stop = new AbortController();
  /** Tenants with running subscriptions, and the function that unfollows each. */
  const followed = new Map<string, () => void>();
  const changedTenants = new Set<string>();
  const leasing = new Map<string, Promise<void>>();
  const running = new Set<Promise<void>>();
  const failedRuns = new FailedRuns(errorPauses);
  let loop: Promise<unknown> = Promise.resolve();
  let wakeUp = () => {};

  async function poll(findTenants: FindTenants): Promise<void> {
    const active = new Set(await findTenants(activeSubscriptions));
    for (const tenant of active) {
      if (!followed.has(tenant))
        followed.set(
          tenant,
          history.follow(tenant, () => wake(tenant)),
        );
    }
    for (const [tenant, unfollow] of followed) {
      if (active.has(tenant)) continue;
      unfollow();
      followed.delete(tenant);
    }
    for (const tenant of new Set([...(await findTenants(dueSubscriptions)), ...changedTenants])) begin(tenant);
  }

  function wake(tenant: string): void {
    changedTenants.add(tenant);
    wakeUp();
  }

  /** Leases and runs the due subscriptions of a tenant, without blocking other tenants. */
  function begin(tenant: string): void {
    if (leasing.has(tenant) || stop.signal.aborted) return;
    changedTenants.delete(tenant);
    const pending = leaseAndRun(tenant)
      .catch((error: unknown) => {
        if (!stop.signal.aborted) logger.warn({ err: error, tenant }, 'deliveries could not start; retrying');
      })
      .finally(() => leasing.delete(tenant));
    leasing.set(tenant, pending);
  }

  async function leaseAndRun(tenant: string): Promise<void> {
    const holder = randomUUID();
    const due = await doWork({ tenant, writes: true }, async () => {
      const last = await history.lastPosition(tenant);
      return await leaseDue(db, tenant, { holder, last, except: failedRuns.resting(tenant) });
    });
    for (const subscription of due) {
      const run = deliver(tenant, holder, subscription).finally(() => running.delete(run));
      running.add(run);
    }
  }

  async function deliver(tenant: string, holder: string, subscription: LeasedSubscription): Promise<void> {
    const { id, version } = subscription;
    const holderOf = { tenant, id, holder };
    const ending = new Stop();
    const onStop = () => ending.abort(new RunEnded('the service stops'));
    stop.signal.addEventListener('abort', onStop, { once: true });
    if (stop.signal.aborted) onStop();
    const endLease = keepLease(
      async () => {
        const isValid = (await extendLease(db, holderOf, version)) && (await mayDeliver(tenant, subscription));
        if (!isValid)
          ending.abort(new RunEnded('the subscription was stopped or changed, or another run has its lease'));
      },
      {
        heartbeat: lease.heartbeat,
        onError: (error) => logger.warn({ err: error, tenant, subscription: id }, 'a run could not extend its lease'),
      },
    );
    let next: number | undefined;
    try {
      next = await doWork({ tenant, signal: ending }, () => deliverLeased(tenant, holder, subscription, ending));
      failedRuns.succeeded(tenant, id);
    } catch (error) {
      if (error instanceof AnnalsError && error.type === 'cursor_invalid') {
        await pauseRestored(
          db,
          holderOf,
          'The database was restored to an earlier state and no longer has the position of the subscription. Resume it with `from`.',
        ).catch(() => {});
      } else if (error instanceof RunEnded || ending.aborted) {
        next = 0;
      } else {
        next = 0;
        const failed = failedRuns.failed(tenant, id);
        logger.warn({ err: error, tenant, subscription: id }, `a run failed; retrying in ${failed.pause} ms`);
        // Keeps the lease if possible, so that no other process sends the same changes.
        await failed.rest(stop.signal);
      }
    } finally {
      endLease();
      stop.signal.removeEventListener('abort', onStop);
    }
    await release(db, holderOf, stop.signal.aborted ? 0 : next).catch((error: unknown) =>
      logger.debug({ err: error, tenant, subscription: id }, 'a lease could not be released; it will expire'),
    );
    // Changes may have arrived while it was leased.
    wake(tenant);
  }

  async function mayDeliver(tenant: string, { maker, document }: LeasedSubscription): Promise<boolean> {
    return await options.mayDeliver(tenant, maker, { readsContext: usesContext(history, document) });
  }

  async function deliverLeased(tenant: string, holder: string, subscription: LeasedSubscription, signal: Stop) {
    if (!(await mayDeliver(tenant, subscription))) {
      await pauseOrphans(options, [tenant]);
      return undefined;
    }
    const document = JSON.parse(subscription.document) as SubscriptionDocument;
    const target = targets.find(({ type }) => type === document.target.type);
    if (target === undefined) throw new Error(`this version has no target ${document.target.type}`);
    const secrets = openSecrets(sealer, tenant, subscription.id, subscription.sealed);
    const sending = {
      tenant,
      subscription: subscription.id,
      name: document.name,
      target: withSecrets(document.target, secrets),
      keys: secrets.keys,
      hide: document.hide ?? [],
      signal,
    };
    return await options.runnerOf(target)(
      new DeliveryRun(options, { tenant, holder, subscription }, { document, target, sending }),
    );
  }

  async function pollPause(): Promise<void> {
    const over = new AbortController();
    wakeUp = () => over.abort();
    if (changedTenants.size > 0 && [...changedTenants].some((tenant) => !leasing.has(tenant))) return;
    await rest(pollInterval, AbortSignal.any([over.signal, stop.signal]));
  }

  async function repeat(name: string, work: () => Promise<void>, pause: () => Promise<void>): Promise<void> {
    while (!stop.signal.aborted) {
      await work().catch((error: unknown) => {
        if (!stop.signal.aborted) logger.warn({ err: error }, `${name} failed; retrying`);
      });
      await pause();
    }
  }

  return {
    start(findTenants) {
      loop = Promise.all([
        repeat('looking for deliveries', () => poll(findTenants), pollPause),
        repeat(
          'checking the makers of subscriptions',
          () => pauseOrphans(options, [...followed.keys()]),
          () => rest(makersInterval, stop.signal),
        ),
      ]);
    },

    async close() {
      stop.abort();
      for (const unfollow of followed.values()) unfollow();
      await loop;
      await Promise.all(leasing.values());
      await Promise.all(running);
    },
  };
}
