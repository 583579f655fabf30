import type { ColumnType, Generated } from 'kysely';
import type { WrittenRestriction } from '../../core/written-restriction.ts';

interface InstallationTable {
  singleton: Generated<boolean>;
  id: Generated<string>;
}

interface OAuthClientTable {
  tenant: string;
  client_id: string;
  name: string;
  /** Null: created by a link, which is its only sign-in. */
  secret_hash: Uint8Array | null;
  scopes: string[];
  /** JSON text when written. Null: no restriction. */
  restriction: ColumnType<readonly WrittenRestriction[] | null, string | null, string | null>;
  created_at: Generated<Date>;
  revoked_at: Generated<Date | null>;
  /** When a person's provider and rules last confirmed the rights; null: at creation. */
  confirmed_at: Generated<Date | null>;
  makers: Generated<string[] | null>;
  /** The person who made it. */
  issuer: Generated<string | null>;
  subject: Generated<string | null>;
  expires_at: Generated<Date | null>;
  rotations: Generated<number | null>;
  used_at: Generated<Date | null>;
  used_address: Generated<string | null>;
}

interface OAuthSigningKeyTable {
  kid: string;
  sealed_key: Uint8Array;
  created_at: Date;
  retired_at: Date;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    installation: InstallationTable;
    oauth_client: OAuthClientTable;
    oauth_signing_key: OAuthSigningKeyTable;
  }
}
