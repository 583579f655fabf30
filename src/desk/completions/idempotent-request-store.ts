import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from '../../postgres/database.ts';
import { type FindTenants, forEachTenant, type TenantWork } from '../../postgres/tenants/tenants-with.ts';

interface CompletionRequestTable {
  tenant: string;
  client_id: string;
  key_hash: Uint8Array;
  attempt: string;
  fingerprint: Uint8Array;
  state: 'running' | 'succeeded' | 'failed';
  expires_at: Date;
  outcome: Uint8Array | null;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    completion_request: CompletionRequestTable;
  }
}

/** A request with an Idempotency-Key: its client and the SHA-256 of the key. */
export interface RequestName {
  tenant: string;
  clientId: string;
  keyHash: Uint8Array;
}

export interface StoredRequest {
  attempt: string;
  fingerprint: Uint8Array;
  state: 'running' | 'succeeded' | 'failed';
  outcome: Uint8Array | null;
  /** Whether the stored request has expired and has no effect. */
  expired: boolean;
}

/**
 * Starts an attempt unless another is valid, and returns its id. A failed attempt is restarted by the next request.
 * Undefined if another attempt runs or has succeeded. `lease` is in milliseconds.
 */
export async function claimRequest(
  db: Database,
  { tenant, clientId, keyHash }: RequestName,
  fingerprint: Uint8Array,
  lease: number,
): Promise<string | undefined> {
  const attempt = randomUUID();
  const row = await db
    .insertInto('completion_request')
    .values({
      tenant,
      client_id: clientId,
      key_hash: keyHash,
      attempt,
      fingerprint,
      state: 'running',
      expires_at: after(lease),
      outcome: null,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['tenant', 'client_id', 'key_hash'])
        .doUpdateSet(({ ref }) => ({
          attempt: ref('excluded.attempt'),
          fingerprint: ref('excluded.fingerprint'),
          state: ref('excluded.state'),
          expires_at: ref('excluded.expires_at'),
          outcome: ref('excluded.outcome'),
        }))
        .where(({ eb, or }) =>
          or([
            // Expired: the new lease starts after the old one ends. A cluster allows no clock in this condition.
            sql<boolean>`extract(epoch from excluded.expires_at - completion_request.expires_at) * 1000 >= ${lease}::bigint`,
            eb('completion_request.state', '=', 'failed'),
          ]),
        ),
    )
    .returning('attempt')
    .executeTakeFirst();
  return row?.attempt;
}

export async function readRequest(db: Database, name: RequestName): Promise<StoredRequest | undefined> {
  return await db
    .selectFrom('completion_request')
    .select([
      'attempt',
      'fingerprint',
      'state',
      'outcome',
      sql<boolean>`expires_at <= statement_timestamp()`.as('expired'),
    ])
    .where(({ and }) => and({ tenant: name.tenant, client_id: name.clientId, key_hash: name.keyHash }))
    .executeTakeFirst();
}

/** Extends the lease of an attempt by `lease` milliseconds. */
export async function extendRequest(db: Database, name: RequestName, attempt: string, lease: number): Promise<void> {
  await own(db, name, attempt)
    .set({ expires_at: after(lease) })
    .where('state', '=', 'running')
    .execute();
}

/** Ends an attempt and stores its sealed outcome for that many milliseconds. */
export async function finishRequest(
  db: Database,
  name: RequestName,
  attempt: string,
  { state, outcome, memory }: { state: 'succeeded' | 'failed'; outcome: Uint8Array; memory: number },
): Promise<void> {
  await own(db, name, attempt)
    .set({ state, outcome, expires_at: after(memory) })
    .execute();
}

export const expiredRequests: TenantWork = {
  table: 'completion_request',
  condition: 'expires_at <= statement_timestamp()',
};

export async function dropExpiredRequests(db: Database, findTenants: FindTenants): Promise<void> {
  await forEachTenant(await findTenants(expiredRequests), (tenant) =>
    db
      .deleteFrom('completion_request')
      .where('tenant', '=', tenant)
      .where('expires_at', '<=', sql<Date>`statement_timestamp()`)
      .execute(),
  );
}

function own(db: Database, name: RequestName, attempt: string) {
  return db
    .updateTable('completion_request')
    .where(({ and }) => and({ tenant: name.tenant, client_id: name.clientId, key_hash: name.keyHash }))
    .where('attempt', '=', attempt);
}

function after(milliseconds: number) {
  return sql<Date>`statement_timestamp() + ${milliseconds} * interval '1 millisecond'`;
}
