import { dueSubscriptions } from '../delivery/dispatch/run-store.ts';
import { activeSubscriptions } from '../delivery/subscriptions/store.ts';
import { expiredTurns } from '../desk/agents/turn-store.ts';
import { dueBudgets } from '../desk/budgets/store.ts';
import { unsummedCalls } from '../desk/calls/store.ts';
import { expiredRequests } from '../desk/completions/idempotent-request-store.ts';
import { reservationWork } from '../desk/completions/quota-store.ts';
import { jobWork } from '../desk/jobs/queue-store.ts';
import { dueMail } from '../desk/mail/mail-store.ts';
import { unfolded } from '../history/upkeep/fold.ts';
import { warmUpStatements } from '../history/warm-up.ts';
import { type FindTenants, sharedLook } from '../postgres/tenants/tenants-with.ts';
import { type AccessServices, createAccess } from './access.ts';
import { createDelivery, type DeliveryServices } from './delivery.ts';
import { createDesk, createProviders, type DeskServices } from './desk.ts';
import { type ContextOptions, createFoundation, type Foundation } from './foundation.ts';
import { createHistory, type HistoryServices } from './history.ts';
import { createTenants, type TenantServices } from './tenants.ts';

/** What every process that does upkeep looks for, all the time. */
const allWork = [
  unfolded,
  ...Object.values(jobWork),
  dueMail,
  activeSubscriptions,
  dueSubscriptions,
  ...Object.values(reservationWork),
  expiredRequests,
  expiredTurns,
  unsummedCalls,
  dueBudgets,
];

/** What the modules use. Annals builds it once for a process. */
export interface Context
  extends Foundation,
    AccessServices,
    HistoryServices,
    TenantServices,
    DeskServices,
    DeliveryServices {
  /** Finds work that waits, for the upkeep of all modules. */
  findTenants: FindTenants;
  /**
   * Does the work in advance that the first token and the first regular expression would wait for, about 0.5 s of processor time. With
   * `reads` it opens connections as well and has the database plan the reads of the history.
   */
  warmUp(options: { reads: boolean }): Promise<void>;
  /** Closes everything that the context made, after the current work has finished. */
  close(): Promise<void>;
}

/** Builds everything that lives as long as the process. The caller must migrate the database first. */
export async function createContext(options: ContextOptions): Promise<Context> {
  await using made = new AsyncDisposableStack();
  const foundation = await createFoundation(options, made);
  const providers = createProviders(foundation, made);
  const access = await createAccess(foundation, options.overrides?.consoleFolder, made);
  const tenants = createTenants(foundation, made);
  const { installation } = access.oauth;
  const history = createHistory(foundation, { ...tenants, installation }, options.worker?.of ?? 1, made);
  const desk = await createDesk(
    foundation,
    { ...history, ...providers, ...access },
    tenants,
    options.overrides?.completionTimes,
  );
  const delivery = createDelivery(foundation, { history, tenants, mail: desk.mail }, made);
  // What follows cannot fail: from here on the caller closes it.
  const closing = made.move();
  return {
    ...foundation,
    ...access,
    ...history,
    ...tenants,
    ...desk,
    ...delivery,
    findTenants: sharedLook(foundation.db, allWork),
    async warmUp({ reads }) {
      if (reads) await foundation.pool.warmUp(warmUpStatements());
      await access.oauth.warmUp();
      await foundation.regexes.warmUp();
    },
    close: async () => await closing.disposeAsync(),
  };
}
