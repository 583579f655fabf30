import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import './tables.ts';

/** A request that came with an Idempotency-Key: whose, and the SHA-256 of the key. */
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
  /** Its time is over: what it says is of no effect any more. */
  expired: boolean;
}

/**
 * Begins an attempt where there is none that still counts, and answers its id. A failed one is begun anew by whoever
 * comes after it; undefined: another one runs or has succeeded. `lease` in milliseconds.
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
            eb('completion_request.expires_at', '<=', sql<Date>`clock_timestamp()`),
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
    .select(['attempt', 'fingerprint', 'state', 'outcome', sql<boolean>`expires_at <= clock_timestamp()`.as('expired')])
    .where('tenant', '=', name.tenant)
    .where('client_id', '=', name.clientId)
    .where('key_hash', '=', name.keyHash)
    .executeTakeFirst();
}

/** Goes on with an attempt; `lease` in milliseconds. */
export async function extendRequest(db: Database, name: RequestName, attempt: string, lease: number): Promise<void> {
  await own(db, name, attempt)
    .set({ expires_at: after(lease) })
    .where('state', '=', 'running')
    .execute();
}

/** Ends an attempt, whose sealed outcome is remembered for so many milliseconds. */
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

export async function dropExpiredRequests(db: Database): Promise<void> {
  await db.deleteFrom('completion_request').where('expires_at', '<=', sql<Date>`clock_timestamp()`).execute();
}

function own(db: Database, name: RequestName, attempt: string) {
  return db
    .updateTable('completion_request')
    .where('tenant', '=', name.tenant)
    .where('client_id', '=', name.clientId)
    .where('key_hash', '=', name.keyHash)
    .where('attempt', '=', attempt);
}

function after(milliseconds: number) {
  return sql<Date>`clock_timestamp() + ${milliseconds} * interval '1 millisecond'`;
}
