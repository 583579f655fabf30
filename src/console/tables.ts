import type { Generated } from 'kysely';

interface ConsoleSessionTable {
  tenant: string;
  secret_hash: Uint8Array;
  client_id: string;
  scopes: string[];
  by_link: boolean;
  created_at: Generated<Date>;
  expires_at: Date;
}

interface ConsoleLinkTable {
  tenant: string;
  secret_hash: Uint8Array;
  client_id: string;
  expires_at: Date;
}

declare module '../postgres/tables.ts' {
  interface Tables {
    console_session: ConsoleSessionTable;
    console_link: ConsoleLinkTable;
  }
}
