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

/** The work for which every process with upkeep searches. */
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

/** The services of the modules, built once for a process. */
export interface Context
  extends Foundation,
    AccessServices,
    HistoryServices,
    TenantServices,
    DeskServices,
    DeliveryServices {
  /** Finds pending work, for the upkeep of all modules. */
  findTenants: FindTenants;
  /**
   * Does in advance what the first token and the first regular expression would wait for, about 0.5 s of processor
   * time. With `reads` it also opens connections and has the database plan the reads of the history.
   */
  warmUp(options: { reads: boolean }): Promise<void>;
  /** Closes everything after the current work has finished. */
  close(): Promise<void>;
}

/** Builds everything that lives as long as the process, on a migrated database. */
export async function createContext(options: ContextOptions): Promise<Context> {
  await using made = new AsyncDisposableStack();
  const foundation = await createFoundation(options, made);
  const providers = createProviders(foundation, made);
  const access = await createAccess(foundation, options.overrides, made);
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
  // Nothing below can fail: from here on, the caller closes.
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
