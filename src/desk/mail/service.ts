import type { FastifyBaseLogger } from 'fastify';
import type { Transporter } from 'nodemailer';
import type { Config } from '../../core/config/config.ts';
import { loadPart, ProgramReplaced } from '../../core/package-folder.ts';
import type { HttpServer } from '../../http/http-server-type.ts';
import { whileListening } from '../../http/while-listening.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { type FindTenants, forEachTenant } from '../../postgres/tenants/tenants-with.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import {
  countWaiting,
  dropSent,
  dueMail,
  insertMail,
  lockDueMail,
  type Mail,
  noteSent,
  postpone,
  tenantsWithWaitingMail,
} from './mail-store.ts';

/** The outcome of an attempt to send a mail. `status`: of the server's refusal, if any. */
export interface MailOutcome {
  readonly isTaken: boolean;
  readonly status?: number | undefined;
}

export type NoteAttempt = (transaction: DatabaseTransaction, attempt: Mail & MailOutcome) => Promise<void>;

/** A queue that sends each e-mail once (contract 8). */
export interface MailQueue {
  /** Queues a mail, sent only if the transaction commits. A second one with the same Message-ID is ignored. */
  queueMail(transaction: DatabaseTransaction, mail: Mail): Promise<void>;
  /** How many of the mails with these Message-IDs wait. */
  countWaiting(transaction: DatabaseTransaction, tenant: string, messageIds: readonly string[]): Promise<number>;
  /** Registers a callback for each attempt to send a mail, in the transaction that records it. */
  onAttempt(note: NoteAttempt): void;
  /** Sends a mail once and immediately, bypassing the queue. Undefined without a mail server in the settings. */
  send(mail: Mail): Promise<MailOutcome | undefined>;
  /** Sends due mails. Without a mail server in the settings, mails wait. */
  deliver(signal: AbortSignal, findTenants: FindTenants): Promise<void>;
  /** Warns the operator about mails that wait for want of a mail server, and deletes old sent mails. */
  upkeep(): Promise<void>;
  close(): void;
}

export interface MailQueueOptions {
  db: Database;
  logger: FastifyBaseLogger;
  mail: Config['mail'];
}

// Milliseconds. A slower mail server counts as unreachable.
const patience = { connectionTimeout: 15_000, greetingTimeout: 15_000, socketTimeout: 30_000 };
const firstPause = 2_000;
const maxPause = 15 * 60_000;

export function createMailQueue({ db, logger, mail: settings }: MailQueueOptions): MailQueue {
  let transporter: Promise<Transporter> | undefined;
  let note: NoteAttempt = async () => {};

  /** Loads the mail client with the first mail, because it costs memory and startup time. */
  async function openTransporter(url: string): Promise<Transporter> {
    try {
      const { createTransport } = await loadPart(() => import('nodemailer'));
      return createTransport({ url, ...patience });
    } catch (error) {
      // The next attempt reopens it: a missing file descriptor, for example, may be available by then.
      transporter = undefined;
      throw error;
    }
  }

  async function attempt(
    { smtpUrl, from }: NonNullable<Config['mail']>,
    { tenant, to, subject, text, messageId }: Mail,
    attempts: number,
  ): Promise<MailOutcome> {
    try {
      transporter ??= openTransporter(smtpUrl);
      const opened = await transporter;
      // An address object is always one recipient, whatever its text contains.
      await opened.sendMail({
        from,
        to: { name: '', address: to },
        subject,
        text,
        messageId,
        headers: headersOf(from),
      });
    } catch (error) {
      const code = codeOf(error);
      if (error instanceof ProgramReplaced) logger.error({ err: error }, 'no mail can be sent');
      // The error itself is not logged: it can contain the server's credentials or the address.
      logger.warn({ tenant, messageId, attempts, code }, 'a mail was not taken');
      return { isTaken: false, status: typeof code === 'number' ? code : undefined };
    }
    logger.info({ tenant, messageId }, 'a mail was sent');
    return { isTaken: true };
  }

  /**
   * Sends one mail in a transaction that locks it against other processes; if this process dies, the database releases
   * the lock. If it dies between the server's acceptance and the commit, the mail is sent again. Records it as sent
   * first, so that a read-only database prevents sending.
   */
  async function deliverOne(tenant: string): Promise<boolean> {
    if (settings === undefined) return false;
    return await inTransaction(db, async (transaction) => {
      const mail = await lockDueMail(transaction, tenant);
      if (mail === undefined) return false;
      await noteSent(transaction, mail);
      const outcome = await attempt(settings, mail, mail.attempts + 1);
      if (!outcome.isTaken) {
        const pause = Math.min(maxPause, firstPause * 2 ** Math.min(mail.attempts, 20));
        await postpone(transaction, mail, pause);
      }
      await note(transaction, { ...mail, ...outcome });
      return true;
    });
  }

  return {
    async queueMail(transaction, mail) {
      if (!(await insertMail(transaction, mail)) || settings !== undefined) return;
      logger.warn({ tenant: mail.tenant }, 'a mail waits: set SMTP_URL and MAIL_FROM to have it sent');
    },

    countWaiting: (transaction, tenant, messageIds) => countWaiting(transaction, tenant, messageIds),

    onAttempt(listener) {
      note = listener;
    },

    async send(mail) {
      return settings === undefined ? undefined : await attempt(settings, mail, 1);
    },

    async deliver(signal, findTenants) {
      if (settings === undefined) return;
      let tenants = await findTenants(dueMail);
      // One mail per tenant in turn: a tenant with many mails does not delay the others.
      while (tenants.length > 0 && !signal.aborted) {
        const more: string[] = [];
        await forEachTenant(tenants, async (tenant) => {
          if (!signal.aborted && (await deliverOne(tenant))) more.push(tenant);
        });
        tenants = more;
      }
    },

    async upkeep() {
      await dropSent(db);
      if (settings !== undefined) return;
      let waiting = 0;
      await forEachTenant(await tenantsWithWaitingMail(db), async (tenant) => {
        waiting += await countWaiting(db, tenant);
      });
      if (waiting > 0) logger.warn({ waiting }, 'mails wait: set SMTP_URL and MAIL_FROM to have them sent');
    },

    close() {
      void transporter?.then((opened) => opened.close()).catch(() => {});
    },
  };
}

/** Prevents automatic replies (RFC 3834), and lets mail programs offer to unsubscribe (RFC 2369). */
function headersOf(from: string): Record<string, string> {
  const [, address = from.trim()] = /<([^<>]+)>\s*$/.exec(from) ?? [];
  const encoded = address.replaceAll(/[%?&#"\s]/g, encodeURIComponent);
  return { 'Auto-Submitted': 'auto-generated', 'List-Unsubscribe': `<mailto:${encoded}>` };
}

function codeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  const { code, responseCode } = error as Error & { code?: unknown; responseCode?: unknown };
  return responseCode ?? code;
}

// Milliseconds.
const deliverEvery = 1_000;
const upkeepEvery = 60 * 60_000;

/** Sends mails while the server runs. */
export async function mailUpkeep(
  app: HttpServer,
  { mail, findTenants }: { mail: MailQueue; findTenants: FindTenants },
): Promise<void> {
  whileListening(app, {
    upkeep: [
      { what: 'sending mails', every: deliverEvery, work: (signal) => mail.deliver(signal, findTenants) },
      { what: 'the upkeep of mails', every: upkeepEvery, work: () => mail.upkeep() },
    ],
    end: () => mail.close(),
  });
}
