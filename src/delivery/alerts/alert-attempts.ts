import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { RunOptions } from '../dispatch/held.ts';
import { changeState } from '../dispatch/held-store.ts';
import { noteAttempts } from '../subscriptions/attempt-store.ts';
import type { SubscriptionDocument } from '../subscriptions/schemas.ts';
import { subscriptionTable } from '../subscriptions/store.ts';
import type { DeliveryResult } from '../targets/target.ts';

/** The Message-ID of an alert's e-mail, which names its subscription. */
export function alertMessageId(tenant: string, id: string, position: number, at: number): string {
  return `<alert.${tenant}.${id}.${position}.${at}@annals>`;
}

/** The subscription that an e-mail of the tenant is an alert of; undefined for any other e-mail. */
export function subscriptionOfAlert(tenant: string, messageId: string): string | undefined {
  const prefix = `<alert.${tenant}.`;
  if (!messageId.startsWith(prefix)) return undefined;
  return /^(.+)\.\d+\.\d+@annals>$/.exec(messageId.slice(prefix.length))?.[1];
}

/** What became of an e-mail. `status`: of the mail server's answer, if there was one. */
export interface MailOutcome {
  readonly isTaken: boolean;
  readonly status?: number | undefined;
}

interface SentMail extends MailOutcome {
  readonly tenant: string;
  readonly to: string;
  readonly messageId: string;
}

/**
 * Notes what the mail server did with an alert's e-mail in the health of the subscription. An e-mail to an address that the alert no
 * longer has says nothing about it.
 */
export async function noteAlertSent(
  transaction: DatabaseTransaction,
  mail: SentMail,
  { now, tellSuspended, onAttempts }: Pick<RunOptions, 'now' | 'tellSuspended' | 'onAttempts'>,
): Promise<void> {
  const { tenant, to, messageId, isTaken } = mail;
  const id = subscriptionOfAlert(tenant, messageId);
  // Locked, so that the address cannot change before the attempt is noted.
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
  await noteAttempts(transaction, tenant, id, attempts);
  if (state?.hasFailed && state.failingSince !== null) {
    await tellSuspended(transaction, { tenant, id, name, since: state.failingSince });
  }
  onAttempts?.(target.type, attempts);
}

/** What an attempt showed: never with the text of the mail server, which can have addresses and credentials in it. */
export function resultOf({ isTaken, status }: MailOutcome): DeliveryResult {
  if (isTaken) return { outcome: 'delivered' };
  if (status === undefined) return { outcome: 'refused', error: 'The e-mail could not be handed to the mail server.' };
  const error =
    status >= 500
      ? 'The mail server refused the e-mail.'
      : 'The mail server did not take the e-mail for the time being.';
  return { outcome: 'failed', status, error };
}
