import { OperatorError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import type { Database } from '../../postgres/database.ts';
import { tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import { type ErasedCounts, eraseSubject } from './erase.ts';
import { listErasures, type StoredErasure } from './erasure-store.ts';
import { type ErasureReason, erasureReasons, openSubject } from './subject.ts';

const rowsAtOnce = 500;

/** All erasures, of all tenants or one, as JSON objects. Subjects are sealed under the secret key. */
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

interface FailedErasure {
  readonly tenant: string;
  readonly erasure: string;
  readonly why: string;
}

/**
 * Repeats the erasures of a file that a restored database lacks, oldest first; a failure does not stop the others.
 * Throws an OperatorError if the file is malformed or its key is missing.
 */
export async function eraseAgain(
  file: string,
  { db, sealer, now }: { db: Database; sealer: Sealer; now: () => number },
): Promise<{ erased: ErasedCounts[]; failed: FailedErasure[] }> {
  const lines = file.split('\n').flatMap((line, index) => (line.trim() === '' ? [] : [parse(line, index + 1)]));
  const tenants = new Set(await tenantsWith(db, { table: 'tenant', condition: 'true' }));
  const [erased, failed]: [ErasedCounts[], FailedErasure[]] = [[], []];
  for (const { tenant, erasure, reason, subject } of lines.sort((a, b) => (a.begunAt < b.begunAt ? -1 : 1))) {
    if (!tenants.has(tenant)) continue;
    const stored = (await listErasures(db, tenant, { limit: 100_000 })).find((row) => row.erasure === erasure);
    if (stored !== undefined && stored.endedAt !== null) continue;
    const sealed = openSubject(sealer, { tenant, erasure, subject });
    if (sealed === undefined)
      throw new OperatorError(`no key of ANNALS_SECRET_KEY opens the erasure ${erasure} of the file`);
    try {
      const again = { erasure, sealed };
      const options = { db, sealer, tenant, subject: sealed.subject, reason, now, again, leaveIds: true };
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
    const isReason = (value: unknown): value is ErasureReason => erasureReasons.some((known) => known === value);
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
    // Not JSON: reported below.
  }
  throw new OperatorError(`line ${number} of the file of erasures is not a line of annals erase --list`);
}
