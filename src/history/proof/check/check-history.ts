import { OperatorError } from '../../../core/operator-error.ts';
import type { Database } from '../../../postgres/database.ts';
import { isFilling } from '../../positions/fill-positions.ts';
import type { ReadBundle } from '../bundle/bundle-lines.ts';
import { readReceiptsBetween } from '../tree/receipts.ts';
import { parseReceipt } from '../verify/receipts.ts';
import type { Verdict } from '../verify/verdicts.ts';
import { type Verification, verifyBundle } from '../verify/verify-bundle.ts';
import { findUnknownEntries } from './unknown-entries.ts';

export interface CheckOptions {
  readonly db: Database;
  readonly readBundle: ReadBundle;
  /** The verifier key of the tenant's log, which does not come from the database. */
  readonly key: string;
  /** The newest checkpoint of the log beside the key; undefined: it is not known there. */
  readonly newest: string | undefined;
}

/** Entries without a position that are told. */
const maxUnknown = 100;

/**
 * Verifies the history of a tenant as it is in the database now. Receipts are accepted, since whoever checks is the operator who
 * wrote them. Throws an OperatorError where it cannot be checked yet.
 */
export async function checkHistory(
  tenant: string,
  { db, readBundle, key, newest }: CheckOptions,
  tell: (verdict: Verdict) => void,
): Promise<Verification> {
  if (await isFilling(db, tenant)) {
    throw new OperatorError(`older changes of ${tenant} are still given their positions; check it when that is done`);
  }
  const receipts = await readReceiptsBetween(db, tenant, 1, Number.MAX_SAFE_INTEGER);
  const accept = new Set(receipts.flatMap(([position, text]) => parseReceipt(position, text)?.name ?? []));
  const read = () => readBundle(tenant, { withContext: true });
  const verified = await verifyBundle(read, { keys: [key], oldCheckpoint: newest, accept }, tell);
  const unknown = await findUnknownEntries(db, tenant, maxUnknown);
  const more = unknown.length === maxUnknown ? ' or more' : '';
  const examples = unknown.slice(0, 3).map(({ entity, entityId, at }) => `${entity} ${entityId} at ${timeOf(at)}`);
  const findings =
    unknown.length === 0
      ? verified.findings
      : [
          ...verified.findings,
          {
            isWrong: true,
            text: `${unknown.length}${more} changes are in the history that were never recorded: ${examples.join(', ')}.`,
          },
        ];
  const isForgotten = newest === undefined;
  return {
    ...verified,
    isRight: verified.isRight && unknown.length === 0 && !isForgotten,
    findings: isForgotten
      ? [...findings, { isWrong: true, text: 'The key has no checkpoint of this log beside it.' }]
      : findings,
  };
}

function timeOf(at: number): string {
  return Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : String(at);
}
