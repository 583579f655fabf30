import { findClient } from '../access/oauth/clients.ts';
import { Semaphore } from '../core/concurrency/semaphore.ts';
import type { HistoryToDeliver } from '../delivery/changes.ts';
import { createDispatcher, type Dispatcher } from '../delivery/dispatch/dispatcher.ts';
import type { Run } from '../delivery/dispatch/held.ts';
import { createSubscriptions, type Subscriptions } from '../delivery/subscriptions/service.ts';
import { suspendedMail } from '../delivery/subscriptions/suspended-mail.ts';
import { createGuardedHttp } from '../delivery/targets/guarded-http.ts';
import type { Target } from '../delivery/targets/target.ts';
import { runWebhook } from '../delivery/webhooks/run-webhook.ts';
import { createWebhookTarget } from '../delivery/webhooks/webhook-target.ts';
import type { MailQueue } from '../desk/mail/service.ts';
import { changelogDialect } from '../history/ask/dialect.ts';
import { fingerprintAt, lastPosition, positionBefore } from '../history/positions/position-store.ts';
import { mayReadHistory } from '../http/scopes.ts';
import { parseQuery } from '../query/parse.ts';
import { readNotificationEmail } from '../tenants/configuration/notification-email.ts';
import type { Foundation } from './foundation.ts';
import type { HistoryServices } from './history.ts';
import type { TenantServices } from './tenants.ts';

/** What goes out of the history. */
export interface DeliveryServices {
  subscriptions: Subscriptions;
  /** Undefined if this process sends nothing. */
  dispatcher: Dispatcher | undefined;
}

/** `closing` gets what closes the connections to targets. */
export function createDelivery(
  foundation: Foundation,
  { history, tenants, mail }: { history: HistoryServices; tenants: TenantServices; mail: MailQueue },
  closing: AsyncDisposableStack,
): DeliveryServices {
  const { config, db, sealer, logger, clock } = foundation;
  const { configuration, documents } = tenants;
  const now = () => clock.now();
  const http = createGuardedHttp({ allowed: config.deliveryAllow });
  closing.defer(() => http.close());
  const read = historyToDeliver(foundation, history);
  const targets: readonly Target[] = [createWebhookTarget({ http, now })];
  const dispatcher = createDispatcher({
    db,
    history: read,
    now,
    sealer,
    logger,
    targets,
    runOf,
    attempts: new Semaphore({ places: 64, name: 'deliveries' }),
    reads: new Semaphore({ places: 8, name: 'readings for deliveries' }),
    async mayDeliver(tenant, clientId) {
      const client = await findClient(db, tenant, clientId);
      if (client === undefined || client.revoked) return false;
      return mayReadHistory(client.scopes) && client.scopes.includes('changelog.subscription_manage');
    },
    async tellSuspended(transaction, suspended) {
      const { tenant } = suspended;
      const to = await readNotificationEmail(configuration, tenant);
      if (to !== undefined) await mail.queueMail(transaction, { tenant, to, ...suspendedMail(suspended) });
    },
  });
  return {
    subscriptions: createSubscriptions({ db, documents, sealer, now, history: read, targets }),
    dispatcher: config.deliveries ? dispatcher : undefined,
  };
}

/** What delivers to a target. */
function runOf({ type, deliverOne }: Target): Run {
  if (deliverOne !== undefined) return runWebhook;
  throw new Error(`nothing delivers to the target ${type}`);
}

function historyToDeliver({ db }: Foundation, { feed }: HistoryServices): HistoryToDeliver {
  const { readMatches, positionOf, cursorOf, follow } = feed;
  return {
    ...{ readMatches, positionOf, cursorOf, follow },
    checkQuery: (q) => void parseQuery(q, changelogDialect),
    positionAt: (tenant, recorded) => positionBefore(db, tenant, recorded),
    fingerprintAt: (tenant, position) => fingerprintAt(db, tenant, position),
    lastPosition: async (tenant) => (await lastPosition(db, tenant)).position,
  };
}
