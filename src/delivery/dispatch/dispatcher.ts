import { randomUUID } from 'node:crypto';
import type { FastifyBaseLogger } from 'fastify';
import { keepLease } from '../../core/concurrency/lease.ts';
import { doWork } from '../../core/concurrency/work.ts';
import { AnnalsError } from '../../core/errors.ts';
import { rest } from '../../core/repeat.ts';
import type { Sealer } from '../../core/sealing.ts';
import { Stop } from '../../core/stop-signal.ts';
import type { FindTenants } from '../../postgres/tenants/tenants-with.ts';
import type { SubscriptionDocument } from '../subscriptions/schemas.ts';
import { openSecrets, withSecrets } from '../subscriptions/secrets.ts';
import { activeSubscriptions } from '../subscriptions/store.ts';
import type { Target } from '../targets/target.ts';
import { FailedRuns } from './failed-runs.ts';
import { Held, type Run, RunEnded, type RunOptions } from './held.ts';
import {
  dueSubscriptions,
  extendLease,
  lease,
  loseSubscription,
  release,
  type TakenSubscription,
  takeDue,
} from './held-store.ts';
import { type MayDeliver, pauseOrphans } from './makers.ts';

/** Delivers the subscriptions of all tenants, beside other processes that do the same. */
export interface Dispatcher {
  start(findTenants: FindTenants): void;
  /** Ends all runs. What is on its way is delivered again. */
  close(): Promise<void>;
}

export interface DispatcherOptions extends RunOptions {
  readonly sealer: Sealer;
  readonly logger: FastifyBaseLogger;
  readonly targets: readonly Target[];
  /** What delivers to a target. */
  readonly runOf: (target: Target) => Run;
  readonly mayDeliver: MayDeliver;
}

// Milliseconds.
const lookEvery = 250;
const makersEvery = 2_000;
/** Until a subscription is tried again that could not be delivered because of an error of this service. */
const pausesAfterError = { min: 5_000, max: 5 * 60_000 };

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  const { db, history, logger, sealer, targets } = options;
  const stop = new AbortController();
  /** Tenants with subscriptions that deliver, and what ends following them. */
  const followed = new Map<string, () => void>();
  const news = new Set<string>();
  const taking = new Map<string, Promise<void>>();
  const running = new Set<Promise<void>>();
  const failedRuns = new FailedRuns(pausesAfterError);
  let loop: Promise<unknown> = Promise.resolve();
  let wakeUp = () => {};

  async function look(findTenants: FindTenants): Promise<void> {
    const active = new Set(await findTenants(activeSubscriptions));
    for (const tenant of active) {
      if (!followed.has(tenant))
        followed.set(
          tenant,
          history.follow(tenant, () => hear(tenant)),
        );
    }
    for (const [tenant, unfollow] of followed) {
      if (active.has(tenant)) continue;
      unfollow();
      followed.delete(tenant);
    }
    for (const tenant of new Set([...(await findTenants(dueSubscriptions)), ...news])) begin(tenant);
  }

  function hear(tenant: string): void {
    news.add(tenant);
    wakeUp();
  }

  /** Takes what is due of a tenant. One tenant whose database does not answer holds up no other. */
  function begin(tenant: string): void {
    if (taking.has(tenant) || stop.signal.aborted) return;
    news.delete(tenant);
    const taken = take(tenant)
      .catch((error: unknown) => {
        if (!stop.signal.aborted) logger.warn({ err: error, tenant }, 'deliveries could not begin; it is tried again');
      })
      .finally(() => taking.delete(tenant));
    taking.set(tenant, taken);
  }

  async function take(tenant: string): Promise<void> {
    const holder = randomUUID();
    const due = await doWork({ tenant, writes: true }, async () => {
      const last = await history.lastPosition(tenant);
      return await takeDue(db, tenant, { holder, last, except: failedRuns.resting(tenant) });
    });
    for (const taken of due) {
      const run = deliver(tenant, holder, taken).finally(() => running.delete(run));
      running.add(run);
    }
  }

  async function deliver(tenant: string, holder: string, taken: TakenSubscription): Promise<void> {
    const { id, version } = taken;
    const held = { tenant, id, holder };
    const ending = new Stop();
    const onStop = () => ending.abort(new RunEnded('the service stops'));
    stop.signal.addEventListener('abort', onStop, { once: true });
    if (stop.signal.aborted) onStop();
    const endLease = keepLease(
      async () => {
        const goesOn = (await extendLease(db, held, version)) && (await options.mayDeliver(tenant, taken.maker));
        if (!goesOn) ending.abort(new RunEnded('the subscription was stopped or written, or another run holds it'));
      },
      {
        heartbeat: lease.heartbeat,
        onError: (error) => logger.warn({ err: error, tenant, subscription: id }, 'a run could not extend its lease'),
      },
    );
    let next: number | undefined;
    try {
      next = await doWork({ tenant, signal: ending }, () => deliverHeld(tenant, holder, taken, ending));
      failedRuns.succeeded(tenant, id);
    } catch (error) {
      if (error instanceof AnnalsError && error.type === 'cursor_invalid') {
        await loseSubscription(
          db,
          held,
          'The database was restored to an earlier state, and the place of the subscription is lost. Resume it with `from`.',
        ).catch(() => {});
      } else if (error instanceof RunEnded || ending.aborted) {
        next = 0;
      } else {
        next = 0;
        const failed = failedRuns.failed(tenant, id);
        logger.warn(
          { err: error, tenant, subscription: id },
          `deliveries of a subscription broke off; it is tried again in ${failed.pause} ms`,
        );
        // The lease is kept as far as it can be, so that no other process sends the same changes.
        await failed.rest(stop.signal);
      }
    } finally {
      endLease();
      stop.signal.removeEventListener('abort', onStop);
    }
    await release(db, held, stop.signal.aborted ? 0 : next).catch((error: unknown) =>
      logger.debug({ err: error, tenant, subscription: id }, 'a subscription could not be released; its lease ends'),
    );
    // What came meanwhile found the subscription held.
    hear(tenant);
  }

  async function deliverHeld(tenant: string, holder: string, taken: TakenSubscription, signal: Stop) {
    if (!(await options.mayDeliver(tenant, taken.maker))) {
      await pauseOrphans(db, [tenant], options.mayDeliver);
      return undefined;
    }
    const document = JSON.parse(taken.document) as SubscriptionDocument;
    const target = targets.find(({ type }) => type === document.target.type);
    if (target === undefined) throw new Error(`this version has no target ${document.target.type}`);
    const secrets = openSecrets(sealer, tenant, taken.id, taken.sealed);
    const sending = {
      tenant,
      subscription: taken.id,
      target: withSecrets(document.target, secrets),
      keys: secrets.keys,
      hide: document.hide ?? [],
      signal,
    };
    return await options.runOf(target)(new Held(options, { tenant, holder, taken }, { document, target, sending }));
  }

  async function untilWoken(): Promise<void> {
    const over = new AbortController();
    wakeUp = () => over.abort();
    if (news.size > 0 && [...news].some((tenant) => !taking.has(tenant))) return;
    await rest(lookEvery, AbortSignal.any([over.signal, stop.signal]));
  }

  async function repeated(what: string, work: () => Promise<void>, pause: () => Promise<void>): Promise<void> {
    while (!stop.signal.aborted) {
      await work().catch((error: unknown) => {
        if (!stop.signal.aborted) logger.warn({ err: error }, `${what} failed; it is tried again`);
      });
      await pause();
    }
  }

  return {
    start(findTenants) {
      loop = Promise.all([
        repeated('looking for deliveries', () => look(findTenants), untilWoken),
        repeated(
          'looking at who made subscriptions',
          () => pauseOrphans(db, [...followed.keys()], options.mayDeliver),
          () => rest(makersEvery, stop.signal),
        ),
      ]);
    },

    async close() {
      stop.abort();
      for (const unfollow of followed.values()) unfollow();
      await loop;
      await Promise.all(taking.values());
      await Promise.all(running);
    },
  };
}
