import type { Generated } from 'kysely';

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
