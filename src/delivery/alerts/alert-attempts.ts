import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { RunOptions } from '../dispatch/delivery-run.ts';
import { changeState } from '../dispatch/run-store.ts';
import { recordAttempts } from '../subscriptions/attempt-store.ts';
import type { SubscriptionDocument } from '../subscriptions/schemas.ts';
import { subscriptionTable } from '../subscriptions/store.ts';
import type { DeliveryResult } from '../targets/target.ts';

/** The Message-ID of an alert's e-mail. It contains the subscription. */
export function alertMessageId(tenant: string, id: string, position: number, at: number): string {
  return `<alert.${tenant}.${id}.${position}.${at}@annals>`;
}

/** The subscription of an alert's e-mail; undefined for any other e-mail. */
export function subscriptionOfAlert(tenant: string, messageId: string): string | undefined {
  const prefix = `<alert.${tenant}.`;
  if (!messageId.startsWith(prefix)) return undefined;
  return /^(.+)\.\d+\.\d+@annals>$/.exec(messageId.slice(prefix.length))?.[1];
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

/** Updates the subscription's health after an alert was sent. Ignores e-mails to a former address. */
export async function recordAlertSent(
  transaction: DatabaseTransaction,
  mail: SentMail,
  { now, notifySuspended, onAttempts }: Pick<RunOptions, 'now' | 'notifySuspended' | 'onAttempts'>,
): Promise<void> {
  const { tenant, to, messageId, isTaken } = mail;
  const id = subscriptionOfAlert(tenant, messageId);
  // Locked, so that the address cannot change before the attempt is recorded.
  const stored = id === undefined ? undefined : await subscriptionTable.find(transaction, tenant, id, { lock: true });
  if (id === undefined || stored === undefined) return;
  const { name, target } = JSON.parse(stored.document) as SubscriptionDocument;
  if (target.to !== to) return;
  const attempts = [{ kind: 'live', at: now(), result: resultOf(mail) }] as const;
  const state = await changeState(
    transaction,
    { tenant, id },
    { counts: {}, health: { is: isTaken ? 'well' : 'failing' } },
  );
  await recordAttempts(transaction, tenant, id, attempts);
  if (state?.hasFailed && state.failingSince !== null) {
    await notifySuspended(transaction, { tenant, id, name, since: state.failingSince });
  }
  onAttempts?.(target.type, attempts);
}

/** Omits the mail server's text, which may contain addresses and credentials. */
export function resultOf({ isTaken, status }: MailOutcome): DeliveryResult {
  if (isTaken) return { outcome: 'delivered' };
  if (status === undefined) return { outcome: 'refused', error: 'The e-mail could not be handed to the mail server.' };
  const error =
    status >= 500
      ? 'The mail server refused the e-mail.'
      : 'The mail server did not take the e-mail for the time being.';
  return { outcome: 'failed', status, error };
}
