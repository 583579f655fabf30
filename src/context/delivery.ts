import { findClient } from '../access/oauth/clients.ts';
import { Semaphore } from '../core/fairness/semaphore.ts';
import { recordAlertSent } from '../delivery/alerts/alert-attempts.ts';
import { createEmailTarget } from '../delivery/alerts/email-target.ts';
import { runAlert } from '../delivery/alerts/run-alert.ts';
import { createHttpTarget } from '../delivery/batches/http-target.ts';
import { runBatches } from '../delivery/batches/run-batches.ts';
import { createS3Target } from '../delivery/batches/s3-target.ts';
import { createSplunkTarget } from '../delivery/batches/splunk-target.ts';
import type { HistoryToDeliver } from '../delivery/changes.ts';
import { maxConcurrentAttempts, maxConcurrentReads } from '../delivery/concurrency.ts';
import type { Runner, RunOptions } from '../delivery/dispatch/delivery-run.ts';
import { createDispatcher, type Dispatcher } from '../delivery/dispatch/dispatcher.ts';
import { createSubscriptions, type Subscriptions } from '../delivery/subscriptions/service.ts';
import { suspendedMail } from '../delivery/subscriptions/suspended-mail.ts';
import { createGuardedHttp } from '../delivery/targets/guarded-http.ts';
import type { Target } from '../delivery/targets/target.ts';
import { runWebhook } from '../delivery/webhooks/run-webhook.ts';
import { createWebhookTarget } from '../delivery/webhooks/webhook-target.ts';
import type { MailQueue } from '../desk/mail/service.ts';
import { changelogDialect } from '../history/search/plan/dialect.ts';
import { parseSentQuery, usesContext } from '../history/search/plan/restriction.ts';
import { mayReadContext, mayReadHistory } from '../http/scopes.ts';
import { parseQuery } from '../query/parse.ts';
import { fingerprintAt, lastPosition, positionBefore } from '../recording/positions.ts';
import { readNotificationEmail } from '../tenants/configuration/service.ts';
import type { Foundation } from './foundation.ts';
import type { HistoryServices } from './history.ts';
import type { TenantServices } from './tenants.ts';

/** Deliveries to subscriptions. */
export interface DeliveryServices {
  subscriptions: Subscriptions;
  /** Undefined if this process delivers nothing. */
  dispatcher: Dispatcher | undefined;
}

/** Adds to `closing` what closes the connections to targets. */
export function createDelivery(
  foundation: Foundation,
  { history, tenants, mail }: { history: HistoryServices; tenants: TenantServices; mail: MailQueue },
  closing: AsyncDisposableStack,
): DeliveryServices {
  const { config, db, sealer, logger, clock, metrics } = foundation;
  const { configuration, documents } = tenants;
  const now = () => clock.now();
  const http = createGuardedHttp({ allowed: config.deliveryAllow });
  closing.defer(() => http.close());
  const read = historyToDeliver(foundation, history);
  const { baseUrl } = config;
  const webhook = createWebhookTarget({ http, now });
  const batched = [
    createHttpTarget({ http, baseUrl, now }),
    createS3Target({ http, baseUrl, now, unconditional: config.s3Unconditional }),
    createSplunkTarget({ http, baseUrl, now }),
  ];
  const email = createEmailTarget({
    baseUrl,
    now,
    send: (message) => mail.send(message),
  });
  const runs = new Map<Target, Runner>([
    [webhook, runWebhook],
    ...batched.map((target): [Target, Runner] => [target, (run) => runBatches(run, target)]),
    [email, (run) => runAlert(run, { queueMail: mail.queueMail, baseUrl })],
  ]);
  const targets = [...runs.keys()];
  const reporting: Pick<RunOptions, 'now' | 'onAttempts' | 'notifySuspended'> = {
    now,
    onAttempts: (target, attempts) => {
      for (const { result } of attempts) metrics?.count('annals_deliveries_total', { target, outcome: result.outcome });
    },
    async notifySuspended(transaction, suspended) {
      const { tenant } = suspended;
      const to = await readNotificationEmail(configuration, tenant);
      if (to !== undefined) await mail.queueMail(transaction, { tenant, to, ...suspendedMail(suspended) });
    },
  };
  mail.onAttempt((transaction, attempt) =>
    recordAlertSent(transaction, attempt, { ...reporting, countWaiting: mail.countWaiting }),
  );
  const dispatcher = createDispatcher({
    ...reporting,
    db,
    history: read,
    sealer,
    logger,
    targets,
    runnerOf(target) {
      const run = runs.get(target);
      if (run === undefined) throw new Error(`nothing delivers to the target ${target.type}`);
      return run;
    },
    attempts: new Semaphore({ places: maxConcurrentAttempts, name: 'deliveries' }),
    reads: new Semaphore({ places: maxConcurrentReads, name: 'readings for deliveries' }),
    async mayDeliver(tenant, clientId, { readsContext }) {
      const client = await findClient(db, tenant, clientId);
      if (client === undefined || client.revoked) return false;
      if (readsContext && !mayReadContext(client.scopes)) return false;
      return mayReadHistory(client.scopes) && client.scopes.includes('changelog.subscription_manage');
    },
  });
  return {
    subscriptions: createSubscriptions({ db, documents, sealer, now, history: read, targets }),
    dispatcher: config.deliveries ? dispatcher : undefined,
  };
}

function historyToDeliver({ db }: Foundation, { feed }: HistoryServices): HistoryToDeliver {
  const { positionOf, cursorOf, follow } = feed;
  return {
    ...{ positionOf, cursorOf, follow },
    readMatches: (tenant, { actors = true, ...request }) => feed.readMatches(tenant, { ...request, actors }),
    checkQuery: (q, reader) => void parseSentQuery(q, reader),
    usesContext: (q) => usesContext(parseQuery(q, changelogDialect)),
    positionAt: (tenant, recorded) => positionBefore(db, tenant, recorded),
    fingerprintAt: (tenant, position) => fingerprintAt(db, tenant, position),
    lastPosition: async (tenant) => (await lastPosition(db, tenant)).position,
  };
}
