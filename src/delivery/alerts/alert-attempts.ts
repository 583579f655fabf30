import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { RunOptions } from '../dispatch/delivery-run.ts';
import { changeState } from '../dispatch/run-store.ts';
import { recordAttempts } from '../subscriptions/attempt-store.ts';
import type { SubscriptionDocument } from '../subscriptions/schemas.ts';
import { subscriptionTable } from '../subscriptions/store.ts';
import { alertLimits, type EmailMembers } from '../targets/schemas.ts';
import type { DeliveryResult, TargetMembers } from '../targets/target.ts';
import type { AlertThreshold } from './alert-state.ts';

/** The members of an e-mail target, with defaults. */
export function alertOf(target: TargetMembers): {
  recipients: readonly string[];
  threshold: AlertThreshold;
  withValues: boolean;
} {
  const { to, threshold = { count: 1, minutes: 1 }, values = false } = target as TargetMembers & EmailMembers;
  return { recipients: typeof to === 'string' ? [to] : to, threshold, withValues: values };
}

/** The Message-IDs of an alert's e-mails, one for each recipient. They contain the subscription. */
export function alertMessageIds(
  tenant: string,
  id: string,
  { position, at, count }: { readonly position: number; readonly at: number; readonly count: number },
): string[] {
  return Array.from({ length: count }, (_none, index) => alertMessageId(`${tenant}.${id}.${position}.${at}`, index));
}

function alertMessageId(alert: string, index: number): string {
  return `<alert.${alert}${index === 0 ? '' : `.r${index}`}@annals>`;
}

/**
 * The subscription of an alert's e-mail, and the Message-IDs of the same alert to all possible recipients; undefined
 * for any other e-mail.
 */
export function alertOfMessage(
  tenant: string,
  messageId: string,
): { readonly id: string; readonly messageIds: readonly string[] } | undefined {
  const prefix = `<alert.${tenant}.`;
  if (!messageId.startsWith(prefix)) return undefined;
  const [, id, alert] = /^(.+)(\.\d+\.\d+)(?:\.r\d)?@annals>$/.exec(messageId.slice(prefix.length)) ?? [];
  if (id === undefined) return undefined;
  const indexes = Array.from({ length: alertLimits.recipients }, (_none, index) => index);
  return { id, messageIds: indexes.map((index) => alertMessageId(`${tenant}.${id}${alert}`, index)) };
}

/** `status`: of the mail server's response, if there was one. */
export interface MailOutcome {
  readonly isTaken: boolean;
  readonly status?: number | undefined;
}

interface SentMail extends MailOutcome {
  readonly tenant: string;
  readonly to: string;
  readonly messageId: string;
}

interface SentOptions extends Pick<RunOptions, 'now' | 'notifySuspended' | 'onAttempts'> {
  /** How many of these e-mails wait. */
  readonly countWaiting: (
    transaction: DatabaseTransaction,
    tenant: string,
    messageIds: readonly string[],
  ) => Promise<number>;
}

/**
 * Updates the subscription's health after an alert was sent to a recipient. An alert fails while no recipient gets it.
 * Ignores e-mails to a former address.
 */
export async function recordAlertSent(
  transaction: DatabaseTransaction,
  mail: SentMail,
  { now, notifySuspended, onAttempts, countWaiting }: SentOptions,
): Promise<void> {
  const { tenant, to, messageId, isTaken } = mail;
  const { id, messageIds } = alertOfMessage(tenant, messageId) ?? {};
  // Locked, so that the address cannot change before the attempt is recorded.
  const stored = id === undefined ? undefined : await subscriptionTable.find(transaction, tenant, id, { lock: true });
  if (id === undefined || messageIds === undefined || stored === undefined) return;
  const { name, target } = JSON.parse(stored.document) as SubscriptionDocument;
  const { recipients } = alertOf(target);
  const index = recipients.indexOf(to);
  if (index < 0) return;
  const result = resultOf(mail, { index, count: recipients.length });
  const attempts = [{ kind: 'live', at: now(), result }] as const;
  const reachesOthers = !isTaken && (await countWaiting(transaction, tenant, messageIds)) < recipients.length;
  const health = reachesOthers ? undefined : ({ is: isTaken ? 'well' : 'failing' } as const);
  const state = await changeState(transaction, { tenant, id }, { counts: {}, health });
  await recordAttempts(transaction, tenant, id, attempts);
  if (state?.hasFailed && state.failingSince !== null) {
    await notifySuspended(transaction, { tenant, id, name, since: state.failingSince });
  }
  onAttempts?.(target.type, attempts);
}

/**
 * Names a recipient by its place in the list. Omits the mail server's text, which may contain addresses and
 * credentials.
 */
export function resultOf(
  { isTaken, status }: MailOutcome,
  { index, count }: { readonly index: number; readonly count: number },
): DeliveryResult {
  if (isTaken) return { outcome: 'delivered' };
  const mail = count === 1 ? 'the e-mail' : `the e-mail to recipient ${index + 1} of ${count}`;
  if (status === undefined) {
    return { outcome: 'refused', error: `T${mail.slice(1)} could not be handed to the mail server.` };
  }
  const error =
    status >= 500 ? `The mail server refused ${mail}.` : `The mail server did not take ${mail} for the time being.`;
  return { outcome: 'failed', status, error };
}
