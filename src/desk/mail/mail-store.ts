import { type Generated, sql } from 'kysely';
import type { Connection, Database, DatabaseTransaction } from '../../postgres/database.ts';
import { forEachTenant, type TenantWork, tenantsWith } from '../../postgres/tenants/tenants-with.ts';

export interface Mail {
  readonly tenant: string;
  /** The recipient's address. */
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  /** `<something@somewhere>`. A tenant's mails with the same Message-ID are one mail. */
  readonly messageId: string;
}

export interface WaitingMail extends Mail {
  /** The number of attempts to send it. */
  readonly attempts: number;
}

/** False if the mail is already queued or sent. */
export async function insertMail(transaction: DatabaseTransaction, mail: Mail): Promise<boolean> {
  const { tenant, to, subject, text, messageId } = mail;
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto('mail')
    .values({ tenant, message_id: messageId, recipient: to, subject, content: text, sent_at: null })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirstOrThrow();
  return numInsertedOrUpdatedRows === 1n;
}

export const dueMail: TenantWork = { table: 'mail', condition: 'sent_at is null and due_at <= statement_timestamp()' };

/** Locks one due mail of the tenant, skipping locked ones. The lock ends with the transaction, even after a crash. */
export async function lockDueMail(transaction: DatabaseTransaction, tenant: string): Promise<WaitingMail | undefined> {
  return await transaction
    .selectFrom('mail')
    .select(['tenant', 'message_id as messageId', 'recipient as to', 'subject', 'content as text', 'attempts'])
    .where('tenant', '=', tenant)
    .where('sent_at', 'is', null)
    .where('due_at', '<=', sql<Date>`statement_timestamp()`)
    .orderBy('due_at')
    .limit(1)
    .forUpdate()
    .skipLocked()
    .executeTakeFirst();
}

export async function noteSent(transaction: DatabaseTransaction, { tenant, messageId }: Mail): Promise<void> {
  await transaction
    .updateTable('mail')
    .set({ sent_at: sql<Date>`statement_timestamp()` })
    .where(({ and }) => and({ tenant, message_id: messageId }))
    .execute();
}

/** Schedules the next attempt for a mail that was not sent, after that many milliseconds. */
export async function postpone(
  transaction: DatabaseTransaction,
  { tenant, messageId }: Mail,
  milliseconds: number,
): Promise<void> {
  await transaction
    .updateTable('mail')
    .set({
      sent_at: null,
      attempts: sql<number>`attempts + 1`,
      due_at: sql<Date>`statement_timestamp() + ${milliseconds}::double precision * interval '1 millisecond'`,
    })
    .where(({ and }) => and({ tenant, message_id: messageId }))
    .execute();
}

/** The tenants with waiting mails. */
export async function tenantsWithWaitingMail(db: Database): Promise<string[]> {
  return await tenantsWith(db, { table: 'mail', condition: 'sent_at is null' });
}

/** The number of the tenant's waiting mails; with Message-IDs only of these. */
export async function countWaiting(
  db: Connection,
  tenant: string,
  messageIds?: readonly string[] | undefined,
): Promise<number> {
  const { count } = await db
    .selectFrom('mail')
    .select((expression) => expression.fn.countAll<number>().as('count'))
    .where('tenant', '=', tenant)
    .where('sent_at', 'is', null)
    .$if(messageIds !== undefined, (query) => query.where('message_id', 'in', messageIds ?? []))
    .executeTakeFirstOrThrow();
  return count;
}

/** Deletes mails of all tenants that were sent long ago. */
export async function dropSent(db: Database): Promise<void> {
  const condition = "sent_at < statement_timestamp() - interval '30 days'";
  const tenants = await tenantsWith(db, { table: 'mail', condition });
  await forEachTenant(tenants, (tenant) =>
    db
      .deleteFrom('mail')
      .where('tenant', '=', tenant)
      .where('sent_at', '<', sql<Date>`statement_timestamp() - interval '30 days'`)
      .execute(),
  );
}

interface MailTable {
  tenant: string;
  message_id: string;
  recipient: string;
  subject: string;
  content: string;
  queued_at: Generated<Date>;
  attempts: Generated<number>;
  due_at: Generated<Date>;
  sent_at: Date | null;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    mail: MailTable;
  }
}
