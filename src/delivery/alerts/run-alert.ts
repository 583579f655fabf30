import { millisecondsOf } from '../../core/duration.ts';
import { AnnalsError } from '../../core/errors.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { DeliveredChange } from '../changes.ts';
import type { Held } from '../dispatch/held.ts';
import { withHidden } from '../webhooks/webhook-body.ts';
import { alertMessageId } from './alert-attempts.ts';
import { alertMail, maxToldChanges } from './alert-mail.ts';
import { type AlertState, afterMail, countMatches, mailDueAt, type RaisedAlert } from './alert-state.ts';
import { findCounted, storeCounted } from './alert-store.ts';
import { type AlertMessage, alertOf } from './email-target.ts';

export interface AlertOptions {
  queueMail: (transaction: DatabaseTransaction, message: AlertMessage) => Promise<void>;
  /** The public address of the service; undefined where nobody has told it. */
  baseUrl: string | undefined;
}

/** Changes of one read. */
const portion = 1_000;
// Milliseconds that a run takes at most.
const maxRun = 5_000;

/**
 * Counts the changes of an alert. What is counted, how far the history has been read and the e-mail are stored in one transaction, so each
 * change counts once and each e-mail is queued once.
 */
export async function runAlert(held: Held, options: AlertOptions): Promise<number | undefined> {
  const begun = performance.now();
  const { db } = held.options;
  const { threshold } = alertOf(held.sending.target);
  let state = await findCounted(db, held.tenant, held.id);
  for (;;) {
    if (performance.now() - begun > maxRun) return 0;
    const place = held.state;
    const reading = await held.read(place, { maxItems: portion });
    const { items, reached, cursor, expired, caughtUp } = reading;
    const matches = items.flatMap((change, index) =>
      isOld(held, change) ? [] : [{ at: change.at, after: placeOf(items[index - 1] ?? place) }],
    );
    const counted = countMatches(state, matches, threshold);
    const mail = await dueMail(held, counted, options);
    if (mail === undefined && reached.position === place.position) return pauseOf(held, counted);
    const next = mail === undefined ? counted : afterMail(counted, held.now());
    await held.settle({
      counts: {
        matched: items.length,
        delivered: matches.length,
        skipped: items.length - matches.length,
        expired,
      },
      place: { ...reached, cursor },
      async also(transaction) {
        if (next !== state) await storeCounted(transaction, held.tenant, held.id, next);
        if (mail !== undefined) await options.queueMail(transaction, mail);
      },
    });
    state = next;
    if (caughtUp) return pauseOf(held, state);
  }
}

function isOld({ document: { maxAge } }: Held, { at, recordedAt }: DeliveredChange): boolean {
  return maxAge !== undefined && recordedAt - at > millisecondsOf(maxAge);
}

function placeOf({ position, fingerprint }: { position: number; fingerprint: number }) {
  return { position, fingerprint };
}

/** Milliseconds until an e-mail is due. */
function pauseOf(held: Held, state: AlertState): number | undefined {
  const due = mailDueAt(state);
  return due === undefined ? undefined : Math.max(0, due - held.now());
}

async function dueMail(held: Held, state: AlertState, options: AlertOptions): Promise<AlertMessage | undefined> {
  const { raised } = state;
  const due = mailDueAt(state);
  const at = held.now();
  if (raised === undefined || due === undefined || at < due) return undefined;
  const { tenant, id, document } = held;
  const { to, withValues } = alertOf(held.sending.target);
  const changes = await firstChanges(held, raised);
  const { name, q } = document;
  const { baseUrl } = options;
  const { subject, text } = alertMail({ tenant, name, q, alert: raised, changes, withValues, baseUrl });
  return { tenant, to, subject, text, messageId: alertMessageId(tenant, id, raised.after.position, at) };
}

/** The first changes of an alert are read again, so that nothing of their values has to be kept. */
async function firstChanges(held: Held, { after, count }: RaisedAlert): Promise<DeliveredChange[]> {
  try {
    const { items } = await held.read(after, { maxItems: Math.min(count, maxToldChanges) });
    return items.map((change) => ({ ...change, text: withHidden(change.text, held.sending.hide) }));
  } catch (error) {
    // The database was restored since, and the subscription resumed at another place.
    if (error instanceof AnnalsError && error.type === 'cursor_invalid') return [];
    throw error;
  }
}
