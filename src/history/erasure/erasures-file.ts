import { OperatorError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database } from '../../postgres/database.ts';
import { tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import { type ErasedCounts, eraseSubject } from './erase.ts';
import { listErasures, type StoredErasure } from './erasure-store.ts';
import { type ErasureReason, erasureReasons, openSubject } from './subject.ts';

const rowsAtOnce = 500;

/** The lines of a file with all erasures of all tenants: JSON objects. Whom they are about is sealed under the secret key. */
export async function* linesOfErasures(db: Database, only?: string): AsyncGenerator<string, void> {
  const tenants = only === undefined ? await tenantsWith(db, { table: 'change_erasure', condition: 'true' }) : [only];
  for (const tenant of tenants) {
    let before: StoredErasure | undefined;
    for (;;) {
      const rows = await listErasures(db, tenant, { before, limit: rowsAtOnce });
      for (const row of rows) {
        const { erasure, begunAt, endedAt, reason, entries, subject } = row;
        const sealed = Buffer.from(subject).toString('base64');
        yield JSON.stringify({ tenant, erasure, begunAt, endedAt, reason, entries, subject: sealed });
        before = row;
      }
      if (rows.length < rowsAtOnce) break;
    }
  }
}

/** An erasure of a file that could not be carried out. */
export interface FailedErasure {
  readonly tenant: string;
  readonly erasure: string;
  readonly why: string;
}

export interface EraseAgainOptions {
  readonly db: Database;
  readonly sealer: Sealer;
  readonly now: () => number;
}

/**
 * Carries out the erasures of a file that a restored database lacks, in the order of their time. Those that fail are returned, the others
 * are carried out all the same. Throws an OperatorError for a file that is none, or whose key is missing.
 */
export async function eraseAgain(
  file: string,
  { db, sealer, now }: EraseAgainOptions,
): Promise<{ erased: ErasedCounts[]; failed: FailedErasure[] }> {
  const lines = file.split('\n').flatMap((line, index) => (line.trim() === '' ? [] : [parse(line, index + 1)]));
  const tenants = new Set(await tenantsWith(db, { table: 'tenant', condition: 'true' }));
  const [erased, failed]: [ErasedCounts[], FailedErasure[]] = [[], []];
  for (const { tenant, erasure, reason, subject } of lines.sort((one, other) =>
    one.begunAt < other.begunAt ? -1 : 1,
  )) {
    if (!tenants.has(tenant)) continue;
    const there = (await listErasures(db, tenant, { limit: 100_000 })).find((one) => one.erasure === erasure);
    if (there !== undefined && there.endedAt !== null) continue;
    const sealed = openSubject(sealer, { tenant, erasure, subject });
    if (sealed === undefined)
      throw new OperatorError(`no key of ANNALS_SECRET_KEY opens the erasure ${erasure} of the file`);
    try {
      const options = {
        db,
        sealer,
        tenant,
        subject: sealed.subject,
        reason,
        now,
        again: { erasure, sealed },
        leaveIds: true,
      };
      erased.push(await eraseSubject({ ...options, rest: async () => {} }));
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      failed.push({ tenant, erasure, why: error.message });
    }
  }
  return { erased, failed };
}

function parse(line: string, number: number) {
  try {
    const { tenant, erasure, begunAt, reason, subject } = JSON.parse(line) as Record<string, unknown>;
    const isReason = (one: unknown): one is ErasureReason => erasureReasons.some((known) => known === one);
    if (
      typeof tenant === 'string' &&
      typeof erasure === 'string' &&
      typeof begunAt === 'string' &&
      typeof subject === 'string' &&
      isReason(reason)
    ) {
      return { tenant, erasure, begunAt, reason, subject: Buffer.from(subject, 'base64') };
    }
  } catch {
    // told below
  }
  throw new OperatorError(`line ${number} of the file of erasures is none of annals erase --list`);
}
