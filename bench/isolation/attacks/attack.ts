import { randomBytes } from 'node:crypto';
import { sql } from 'kysely';
import type { Database } from '../../../src/postgres/database.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import type { Vendor } from '../../../test/support/vendor/vendor-server.ts';

/** A tenant that attacks, in the attackers' process. */
export interface Attacker {
  readonly tenant: string;
  /** Calls the service with the tenant's token, which has every scope. Rejects once the attack is over. */
  call(path: string, options?: { method?: string; body?: string; contentType?: string }): Promise<Response>;
  /** Calls without a token. */
  callOpen(path: string, options: RequestInit): Promise<Response>;
  /** Plays the vendor for this tenant's own agents. */
  readonly vendor: Vendor;
  /** Counts an outcome for the report, usually a status. `times`: default 1. */
  count(outcome: string | number, times?: number): void;
}

export interface Attack {
  /** The row of the table of attacks. */
  readonly row: number;
  readonly title: string;
  /** Fills the attacker's tenant, below HTTP. */
  fill?(db: Database, tenant: string): Promise<unknown>;
  /** Prepares the attack over HTTP. */
  prepare?(attacker: Attacker): Promise<void>;
  /** Attacks until the signal is aborted. */
  run(attacker: Attacker, signal: AbortSignal): Promise<void>;
  /** What the attackers got that they must not get; undefined if nothing. */
  fault?(counts: Readonly<Record<string, number>>, seconds: number, attackers: number): string | undefined;
  /** Seconds; default: those of the command line. */
  readonly seconds?: number;
}

/** Repeats work until the signal is aborted, so many times at once. */
export async function repeatedly(
  times: number,
  signal: AbortSignal,
  work: (worker: number, turn: number) => Promise<void>,
): Promise<void> {
  const worker = async (place: number) => {
    for (let turn = 0; !signal.aborted; turn += 1) {
      await work(place, turn).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    }
  };
  await Promise.all(Array.from({ length: times }, (_, place) => worker(place)));
}

/** Sends a body, reads the answer to its end and counts its status. */
export async function send(
  { call, count }: Attacker,
  method: string,
  path: string,
  body?: unknown,
  contentType = 'application/json',
): Promise<void> {
  const text = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
  const response = await call(path, { method, contentType, ...(text === undefined ? {} : { body: text }) });
  await response.arrayBuffer();
  count(response.status);
}

/** Changes of the last day: of 200 products, by 10 actors. */
export function changesOf(count: number): Change[] {
  const now = Date.now();
  return Array.from({ length: count }, (_, index) => ({
    identity: randomBytes(16),
    at: now - index * 1_000,
    type: 'update',
    entity: 'product',
    entityId: `p${index % 200}`,
    actor: `Person ${index % 10}`,
    related: [],
    paths: '{"price":{"before":1,"after":2}}',
  }));
}

/** Records changes in batches of 2,000. */
export async function recordAll(db: Database, tenant: string, changes: readonly Change[]): Promise<void> {
  const record = createRecorder(db, tenant, () => Date.now());
  for (let begin = 0; begin < changes.length; begin += 2_000) await record(changes.slice(begin, begin + 2_000));
}

const metadata = '{"version":1,"createdAt":"2026-01-01T00:00:00.000Z","modifiedAt":"2026-01-01T00:00:00.000Z"}';

/**
 * Inserts a type and its instances below the service. `instances` selects `id` and `members`, the JSON text of further
 * members.
 */
export async function insertInstances(db: Database, tenant: string, type: string, instances: string): Promise<void> {
  const document = `{"id":"${type}","name":{"en":"${type}"},"metadata":${metadata}}`;
  await sql`insert into custom_entity (tenant, id, version, document, fields)
    values (${tenant}, ${type}, 1, ${document}, ${document}::jsonb)`.execute(db);
  await sql`insert into custom_instance (tenant, type, id, version, document, fields)
    select ${tenant}, ${type}, id, 1, document, document::jsonb
      from (select id, format('{"id":"%s","metadata":%s,%s}', id, ${metadata}::text, members) as document
              from (${sql.raw(instances)}) made) made`.execute(db);
}
