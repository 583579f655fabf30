import { Semaphore } from '../../core/concurrency/semaphore.ts';
import { currentWork } from '../../core/concurrency/work.ts';
import { AnnalsError, invalidBody } from '../../core/errors.ts';
import { Stop } from '../../core/stop-signal.ts';
import { faultOfChosenId } from '../../http/chosen-id.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { parseInstant } from '../../query/instant.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import type { ReadingPosition } from '../changes.ts';
import { testPlaces } from '../places.ts';
import type { DeliveryResult } from '../targets/target.ts';
import { noteAttempts } from './attempt-store.ts';
import { foundSubscription, placeOf, subscriptionNoun, targetOf } from './lookup.ts';
import type { ReplayBody } from './schemas.ts';
import { openSecrets, withSecrets } from './secrets.ts';
import {
  dropKept,
  dropParked,
  insertReplay,
  lockState,
  makeDue,
  resumeSubscription,
  type StateOfSubscription,
  stopSubscription,
  unpark,
} from './store.ts';
import type { SubscriptionContext } from './write-subscriptions.ts';

/** What is done with a subscription that is there. Its document stays. */
export interface SubscriptionSteering {
  test(tenant: string, id: string): Promise<DeliveryResult>;
  pause(tenant: string, id: string): Promise<void>;
  /** `from`: where it goes on if its place was lost. */
  resume(tenant: string, id: string, from?: string): Promise<void>;
  replay(tenant: string, id: string, asked: ReplayBody): Promise<void>;
  dropParked(tenant: string, id: string): Promise<void>;
}

export function createSteering({ db, sealer, now, history, targets }: SubscriptionContext): SubscriptionSteering {
  const tests = new Semaphore({ ...testPlaces, maxWaitingOfTenant: 0, name: 'tests of subscriptions' });

  /** Does something with a subscription that is there, while no run of it settles. */
  async function withState(
    tenant: string,
    id: string,
    work: (transaction: DatabaseTransaction, state: StateOfSubscription) => Promise<void>,
  ): Promise<void> {
    await inTransaction(db, async (transaction) => {
      const state = faultOfChosenId(id) === undefined ? await lockState(transaction, tenant, id) : undefined;
      if (state === undefined) throw notFound(subscriptionNoun);
      await work(transaction, state);
    });
  }

  async function momentOf(tenant: string, field: string, text: string): Promise<ReadingPosition> {
    const instant = parseInstant(text);
    if (typeof instant !== 'string') return await history.positionAt(tenant, instant.millisecond);
    return await placeOf(history, tenant, field, text, `is no cursor of the feed of this tenant, and not ${instant}`);
  }

  return {
    async test(tenant, id) {
      const { sealed, document } = await foundSubscription(db, tenant, id);
      const secrets = openSecrets(sealer, tenant, id, sealed);
      const sending = {
        tenant,
        subscription: id,
        target: withSecrets(document.target, secrets),
        keys: secrets.keys,
        hide: document.hide ?? [],
        signal: currentWork()?.signal ?? new Stop(),
      };
      const at = now();
      const result = await tests.use(tenant, sending.signal, () => targetOf(targets, document.target).test(sending));
      await inTransaction(db, (transaction) => noteAttempts(transaction, tenant, id, [{ kind: 'test', at, result }]));
      return told(result);
    },

    async pause(tenant, id) {
      await withState(tenant, id, async (transaction, { state, reason }) => {
        // Who is not enabled, or suspended, stays what it is: to go on takes more than to resume.
        if (state === 'suspended' || reason === 'disabled') return;
        await stopSubscription(transaction, tenant, id, { state: 'paused', reason: 'client' });
      });
    },

    async resume(tenant, id, from) {
      const place = from === undefined ? undefined : await placeOf(history, tenant, 'from', from);
      await withState(tenant, id, async (transaction, { reason }) => {
        if (reason === 'disabled') {
          throw new AnnalsError('conflict_resource', 'The subscription is not enabled: set `enabled` to true.');
        }
        if (reason === 'maker') {
          throw new AnnalsError(
            'conflict_resource',
            'The client that made the subscription may not any more. Another client can take it over with PUT.',
          );
        }
        if (reason === 'restored' && place === undefined) {
          throw new AnnalsError(
            'conflict_resource',
            'The database was restored, and the place of the subscription is lost: say `from` where it goes on.',
          );
        }
        if (reason !== 'restored' && place !== undefined) {
          throw invalidBody({ field: 'from', message: 'is only for a subscription whose place was lost' });
        }
        if (place !== undefined) await dropKept(transaction, tenant, id);
        const at = place && { ...place, cursor: history.cursorOf(tenant, place) };
        await resumeSubscription(transaction, tenant, id, at);
      });
    },

    async replay(tenant, id, { from, to, parked }) {
      const { document } = await foundSubscription(db, tenant, id);
      if (targetOf(targets, document.target).isReplayed === false) {
        throw new AnnalsError('conflict_resource', 'An alert sends nothing once more.');
      }
      if (parked === true) {
        if (from !== undefined || to !== undefined) {
          throw invalidBody({ field: 'parked', message: 'goes without from and to' });
        }
        await withState(tenant, id, (transaction) => unpark(transaction, tenant, id));
        return;
      }
      if (from === undefined) throw invalidBody({ field: 'from', message: 'is required, or parked' });
      const begin = await momentOf(tenant, 'from', from);
      const { position: until } = await momentOf(tenant, 'to', to ?? 'now');
      if (isBefore(to, from) || until < begin.position) throw invalidBody({ field: 'to', message: 'is before from' });
      if (until === begin.position) return;
      await withState(tenant, id, async (transaction) => {
        if (!(await insertReplay(transaction, tenant, id, { ...begin, until }))) {
          throw new AnnalsError(
            'conflict_resource',
            'A replay of this subscription is on its way: there is one at a time.',
          );
        }
        await makeDue(transaction, tenant, id);
      });
    },

    async dropParked(tenant, id) {
      await withState(tenant, id, (transaction) => dropParked(transaction, tenant, id));
    },
  };
}

/** What an attempt showed for people, and nothing that an answer says of the next attempts: of some targets no answer is told. */
function told({ outcome, status, duration, error, answer }: DeliveryResult): DeliveryResult {
  return {
    outcome,
    ...(status !== undefined && { status }),
    ...(duration !== undefined && { duration }),
    ...(error !== undefined && { error }),
    ...(answer !== undefined && { answer }),
  };
}

/** Whether both are times, in this order. What was recorded between the two may be nothing either way. */
function isBefore(one: string | undefined, other: string): boolean {
  const [instant, later] = [parseInstant(one ?? ''), parseInstant(other)];
  return typeof instant !== 'string' && typeof later !== 'string' && instant.millisecond < later.millisecond;
}
