import { millisecondsOf } from '../../core/duration.ts';
import { AnnalsError } from '../../core/errors.ts';
import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';
import type { DeliveredChange } from '../changes.ts';
import type { DeliveryRun } from '../dispatch/delivery-run.ts';
import { withHidden } from '../webhooks/webhook-body.ts';
import { alertMessageIds, alertOf } from './alert-attempts.ts';
import { alertMail, maxListedChanges } from './alert-mail.ts';
import {
  type AlertState,
  afterMail,
  countMatches,
  mailDueAt,
  nothingCounted,
  type RaisedAlert,
} from './alert-state.ts';
import type { AlertMessage } from './email-target.ts';

async function findCounted(db: Connection, tenant: string, subscription: string): Promise<AlertState> {
  const row = await db
    .selectFrom('delivery_alert')
    .select('counted')
    .where(({ and }) => and({ tenant, subscription }))
    .executeTakeFirst();
  return row === undefined
    ? nothingCounted
    : { ...nothingCounted, ...(JSON.parse(row.counted) as Partial<AlertState>) };
}

async function storeCounted(
  transaction: DatabaseTransaction,
  tenant: string,
  subscription: string,
  state: AlertState,
): Promise<void> {
  const counted = JSON.stringify(state);
  await transaction
    .insertInto('delivery_alert')
    .values({ tenant, subscription, counted })
    .onConflict((conflict) => conflict.columns(['tenant', 'subscription']).doUpdateSet({ counted }))
    .execute();
}

interface DeliveryAlertTable {
  tenant: string;
  subscription: string;
  counted: string;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    delivery_alert: DeliveryAlertTable;
  }
}

export interface AlertOptions {
  queueMail: (transaction: DatabaseTransaction, message: AlertMessage) => Promise<void>;
  /** The public base URL of the service, if configured. */
  baseUrl: string | undefined;
}

/** Changes per read. */
const pageSize = 1_000;
// Milliseconds.
const maxRun = 5_000;

/**
 * Counts the changes of an alert. Stores the counts, the position and the e-mail in one transaction, so each change
 * counts once and each e-mail is queued once.
 */
export async function runAlert(run: DeliveryRun, options: AlertOptions): Promise<number | undefined> {
  const startedAt = performance.now();
  const { db } = run.options;
  const { threshold } = alertOf(run.sending.target);
  let state = await findCounted(db, run.tenant, run.id);
  for (;;) {
    if (performance.now() - startedAt > maxRun) return 0;
    const checkpoint = run.state;
    const reading = await run.read(checkpoint, { maxItems: pageSize });
    const { items, reached, cursor, expired, caughtUp } = reading;
    const matches = items.flatMap((change, index) =>
      isOld(run, change) ? [] : [{ at: change.at, after: placeOf(items[index - 1] ?? checkpoint) }],
    );
    const counted = countMatches(state, matches, threshold);
    const mails = await dueMails(run, counted, options);
    if (mails === undefined && reached.position === checkpoint.position) return pauseOf(run, counted);
    const next = mails === undefined ? counted : afterMail(counted, run.now());
    await run.settle({
      counts: {
        matched: items.length,
        delivered: matches.length,
        skipped: items.length - matches.length,
        expired,
      },
      checkpoint: { ...reached, cursor },
      async also(transaction) {
        if (next !== state) await storeCounted(transaction, run.tenant, run.id, next);
        for (const mail of mails ?? []) await options.queueMail(transaction, mail);
      },
    });
    state = next;
    if (caughtUp) return pauseOf(run, state);
  }
}

function isOld({ document: { maxAge } }: DeliveryRun, { at, recordedAt }: DeliveredChange): boolean {
  return maxAge !== undefined && recordedAt - at > millisecondsOf(maxAge);
}

function placeOf({ position, fingerprint }: { position: number; fingerprint: number }) {
  return { position, fingerprint };
}

/** Milliseconds until an e-mail is due. */
function pauseOf(run: DeliveryRun, state: AlertState): number | undefined {
  const due = mailDueAt(state);
  return due === undefined ? undefined : Math.max(0, due - run.now());
}

/** One e-mail for each recipient, so that a refused address stops no other; undefined while none is due. */
async function dueMails(
  run: DeliveryRun,
  state: AlertState,
  options: AlertOptions,
): Promise<AlertMessage[] | undefined> {
  const { raised } = state;
  const due = mailDueAt(state);
  const at = run.now();
  if (raised === undefined || due === undefined || at < due) return undefined;
  const { tenant, id, document } = run;
  const { recipients, withValues } = alertOf(run.sending.target);
  const changes = await firstChanges(run, raised);
  const { name, q } = document;
  const { baseUrl } = options;
  const { subject, text } = alertMail({ tenant, name, q, alert: raised, changes, withValues, baseUrl });
  const { position } = raised.after;
  const messageIds = alertMessageIds(tenant, id, { position, at, count: recipients.length });
  return messageIds.map((messageId, index) => ({ tenant, to: recipients[index] ?? '', subject, text, messageId }));
}

/** Rereads the first changes of an alert, so that their values need not be stored. */
async function firstChanges(run: DeliveryRun, { after, count }: RaisedAlert): Promise<DeliveredChange[]> {
  try {
    const { items } = await run.read(after, { maxItems: Math.min(count, maxListedChanges) });
    return items.map((change) => ({ ...change, text: withHidden(change.text, run.sending.hide) }));
  } catch (error) {
    // The database was restored, and the subscription resumed at another position.
    if (error instanceof AnnalsError && error.type === 'cursor_invalid') return [];
    throw error;
  }
}
