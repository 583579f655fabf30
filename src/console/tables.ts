import type { Generated } from 'kysely';

interface ConsoleSessionTable {
  tenant: string;
  secret_hash: Uint8Array;
  client_id: string;
  scopes: string[];
  by_link: boolean;
  created_at: Generated<Date>;
  expires_at: Date;
  issuer: Generated<string | null>;
  subject: Generated<string | null>;
  sealed_renewal: Generated<Uint8Array | null>;
  tenants: Generated<string[] | null>;
  checked_at: Generated<Date | null>;
  for_keys: Generated<boolean>;
  renewing_until: Generated<Date | null>;
  sealed_id_token: Generated<Uint8Array | null>;
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
