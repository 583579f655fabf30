import { AnnalsError, invalidBody } from '../../core/errors.ts';
import { Semaphore } from '../../core/fairness/semaphore.ts';
import { currentWork } from '../../core/fairness/work.ts';
import { Stop } from '../../core/stop-signal.ts';
import { faultOfChosenId } from '../../http/chosen-id.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { parseInstant } from '../../query/instant.ts';
import { notFound } from '../../recording/documents/own-documents.ts';
import type { ReadingPosition } from '../changes.ts';
import { testLimits } from '../concurrency.ts';
import type { DeliveryResult } from '../targets/target.ts';
import { recordAttempts } from './attempt-store.ts';
import type { ReplayBody } from './schemas.ts';
import { openSecrets, withSecrets } from './secrets.ts';
import {
  discardPending,
  dropParked,
  insertReplay,
  lockState,
  makeDue,
  positionOfCursor,
  requireSubscription,
  resumeSubscription,
  type StateOfSubscription,
  stopSubscription,
  subscriptionNoun,
  targetOf,
  unpark,
} from './store.ts';
import type { SubscriptionContext } from './write-subscriptions.ts';

/** Operations on a subscription that leave its document unchanged. */
export interface SubscriptionControls {
  test(tenant: string, id: string): Promise<DeliveryResult>;
  pause(tenant: string, id: string): Promise<void>;
  /** `from`: where to resume if its position was lost in a restore. */
  resume(tenant: string, id: string, from?: string): Promise<void>;
  replay(tenant: string, id: string, body: ReplayBody): Promise<void>;
  dropParked(tenant: string, id: string): Promise<void>;
}

export function createControls({ db, sealer, now, history, targets }: SubscriptionContext): SubscriptionControls {
  const tests = new Semaphore({ ...testLimits, maxWaitingOfTenant: 0, name: 'tests of subscriptions' });

  /** Locks a subscription's state, so that no run settles until `work` is done. */
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
    return await positionOfCursor(
      history,
      tenant,
      field,
      text,
      `is not a cursor of the feed of this tenant, nor ${instant}`,
    );
  }

  return {
    async test(tenant, id) {
      const { sealed, document } = await requireSubscription(db, tenant, id);
      const secrets = openSecrets(sealer, tenant, id, sealed);
      const sending = {
        tenant,
        subscription: id,
        name: document.name,
        target: withSecrets(document.target, secrets),
        keys: secrets.keys,
        hide: document.hide ?? [],
        signal: currentWork()?.signal ?? new Stop(),
      };
      const at = now();
      const result = await tests.use(tenant, sending.signal, () => targetOf(targets, document.target).test(sending));
      await inTransaction(db, (transaction) => recordAttempts(transaction, tenant, id, [{ kind: 'test', at, result }]));
      return viewOf(result);
    },

    async pause(tenant, id) {
      await withState(tenant, id, async (transaction, { state, reason }) => {
        // A disabled or suspended subscription keeps its reason.
        if (state === 'suspended' || reason === 'disabled') return;
        await stopSubscription(transaction, tenant, id, { state: 'paused', reason: 'client' });
      });
    },

    async resume(tenant, id, from) {
      const position = from === undefined ? undefined : await positionOfCursor(history, tenant, 'from', from);
      await withState(tenant, id, async (transaction, { reason }) => {
        if (reason === 'disabled') {
          throw new AnnalsError('conflict_resource', 'The subscription is not enabled: set `enabled` to true.');
        }
        if (reason === 'maker') {
          throw new AnnalsError(
            'conflict_resource',
            'The client that made the subscription lost its scopes. Another client can take it over with PUT.',
          );
        }
        if (reason === 'restored' && position === undefined) {
          throw new AnnalsError(
            'conflict_resource',
            'The database was restored and no longer has the position of the subscription: set `from` to resume.',
          );
        }
        if (reason !== 'restored' && position !== undefined) {
          throw invalidBody({ field: 'from', message: 'is only for a subscription whose position was lost' });
        }
        if (position !== undefined) await discardPending(transaction, tenant, id);
        const at = position && { ...position, cursor: history.cursorOf(tenant, position) };
        await resumeSubscription(transaction, tenant, id, at);
      });
    },

    async replay(tenant, id, { from, to, parked }) {
      const { document } = await requireSubscription(db, tenant, id);
      if (targetOf(targets, document.target).isReplayed === false) {
        throw new AnnalsError('conflict_resource', 'An alert cannot be replayed.');
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
            'A replay of this subscription is already running: wait until it has ended.',
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

/** The members of a result that clients may see. */
function viewOf({ outcome, status, duration, reason, error, answer, request }: DeliveryResult): DeliveryResult {
  return {
    outcome,
    ...(status !== undefined && { status }),
    ...(duration !== undefined && { duration }),
    ...(reason !== undefined && { reason }),
    ...(error !== undefined && { error }),
    ...(answer !== undefined && { answer }),
    ...(request !== undefined && { request }),
  };
}

/** Whether both are times and `first` is earlier. Positions cannot tell if nothing was recorded between. */
function isBefore(first: string | undefined, second: string): boolean {
  const [instant, later] = [parseInstant(first ?? ''), parseInstant(second)];
  return typeof instant !== 'string' && typeof later !== 'string' && instant.millisecond < later.millisecond;
}
