import type { FastifyBaseLogger } from 'fastify';
import { createTransport } from 'nodemailer';
import type { Config } from '../config.ts';
import type { Database, DatabaseTransaction } from '../db/database.ts';
import { inTransaction } from '../db/transaction.ts';
import { countWaiting, dropSent, insertMail, lockDueMail, type Mail, noteSent, postpone } from './mail-store.ts';

/** E-mail that is sent once, sooner or later (contract 8). */
export interface MailQueue {
  /** Queues a mail, for good once the transaction is committed. The same Message-ID again is the same mail. */
  queueMail(transaction: DatabaseTransaction, mail: Mail): Promise<void>;
  /** Sends what is due. Nothing where no mail server is configured: mails wait until one is. */
  deliver(signal: AbortSignal): Promise<void>;
  /** Tells the operator what waits though no mail server is configured, and forgets what was sent long ago. */
  upkeep(): Promise<void>;
  close(): void;
}

export interface MailQueueOptions {
  db: Database;
  logger: FastifyBaseLogger;
  mail: Config['mail'];
}

// Milliseconds. A server that is slower than this does not count as there.
const patience = { connectionTimeout: 15_000, greetingTimeout: 15_000, socketTimeout: 30_000 };
const firstPause = 2_000;
const maxPause = 15 * 60_000;

export function createMailQueue({ db, logger, mail: settings }: MailQueueOptions): MailQueue {
  const transporter = settings && createTransport({ url: settings.smtpUrl, ...patience });

  /**
   * One mail, within one transaction that holds it: no other process sends it meanwhile, and when this one dies the
   * database lets go of it. Killed between the server's yes and the commit, it goes out once more as the same mail.
   */
  async function deliverOne(): Promise<boolean> {
    if (transporter === undefined || settings === undefined) return false;
    return await inTransaction(db, async (transaction) => {
      const mail = await lockDueMail(transaction);
      if (mail === undefined) return false;
      const { tenant, to, subject, text, messageId, attempts } = mail;
      try {
        // As an address it is one recipient, whatever is in it.
        await transporter.sendMail({ from: settings.from, to: { name: '', address: to }, subject, text, messageId });
      } catch (error) {
        const pause = Math.min(maxPause, firstPause * 2 ** Math.min(attempts, 20));
        // Not the error itself: it may tell the server's credentials or the address.
        logger.warn(
          { tenant, messageId, attempts: attempts + 1, code: codeOf(error) },
          'a mail was not taken; it is sent again later',
        );
        await postpone(transaction, mail, pause);
        return true;
      }
      await noteSent(transaction, mail);
      logger.info({ tenant, messageId }, 'a mail was sent');
      return true;
    });
  }

  return {
    async queueMail(transaction, mail) {
      if (!(await insertMail(transaction, mail)) || settings !== undefined) return;
      logger.warn({ tenant: mail.tenant }, 'a mail waits: set SMTP_URL and MAIL_FROM to have it sent');
    },

    async deliver(signal) {
      while (!signal.aborted && (await deliverOne()));
    },

    async upkeep() {
      await dropSent(db);
      const waiting = settings === undefined ? await countWaiting(db) : 0;
      if (waiting > 0) logger.warn({ waiting }, 'mails wait: set SMTP_URL and MAIL_FROM to have them sent');
    },

    close() {
      transporter?.close();
    },
  };
}

function codeOf(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  const { code, responseCode } = error as Error & { code?: unknown; responseCode?: unknown };
  return responseCode ?? code;
}
