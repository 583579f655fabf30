import { OperatorError } from '../../../core/operator-error.ts';
import type { Database } from '../../../postgres/database.ts';
import { isFilling } from '../../positions/fill-positions.ts';
import type { ReadBundle } from '../bundle/bundle-lines.ts';
import { type Log, readLog } from '../tree/log-store.ts';
import { readReceiptsBetween } from '../tree/receipts.ts';
import { parseReceipt } from '../verify/receipts.ts';
import type { Verdict } from '../verify/verdicts.ts';
import { type Verification, verifyBundle } from '../verify/verify-bundle.ts';
import { findUnderived } from './derived-columns.ts';
import { findMisnamed } from './misnamed.ts';
import { findUnknownEntries, type UnknownEntry } from './unknown-entries.ts';
import { findWrongPlaces } from './wrong-places.ts';
import { findWrongTiles } from './wrong-tiles.ts';

export interface CheckOptions {
  readonly db: Database;
  readonly readBundle: ReadBundle;
  /** The verifier key of the tenant's log, which does not come from the database. */
  readonly key: string;
  /** The newest checkpoint of the log beside the key; undefined: it is not known there. */
  readonly newest: string | undefined;
}

/** Entries that are told at most. */
const maxFound = 100;

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
  const accept = new Set(
    // A history is sealed for the first time once, which needs no acceptance.
    receipts
      .flatMap(([position, text]) => parseReceipt(position, text) ?? [])
      .filter(({ what }) => what !== 'first sealing')
      .map(({ name }) => name),
  );
  const read = () => readBundle(tenant, { withContext: true });
  const verified = await verifyBundle(read, { keys: [key], oldCheckpoint: newest, accept }, tell);
  const log = await readLog(db, tenant);
  const more = [
    ...verified.receipts
      .filter(({ isAccepted }) => !isAccepted)
      .map(
        ({ receipt }) => `The receipt ${receipt.name} says that the history was sealed for the first time, once more.`,
      ),
    ...sentenceOf(await findUnknownEntries(db, tenant, maxFound), 'are in the history that were never recorded'),
    ...sentenceOf(
      await findUnderived(db, tenant, maxFound),
      'have columns for queries that do not follow from what they say',
    ),
    ...(await findMisnamed(db, tenant, maxFound)).map(
      (name) =>
        `Recorders look ${name} up by a hash that is not its own: changes would be recorded under another name.`,
    ),
    ...(await findWrongTiles(db, tenant)).map(
      (tile) => `The hash that the log has of its tile ${tile} is not the one of that tile.`,
    ),
    ...(await findWrongPlaces(db, tenant, maxFound)).map(
      (first) =>
        `The places of the positions from ${first} on do not follow from each other, or do not lead up to what is sealed.`,
    ),
    ...(isBeginOf(log, receipts) ? [] : ['The log does not name the receipt with which it begins.']),
    ...(log?.vkey === key ? [] : ['The verifier key in the database is not the one of ANNALS_PROOF_KEY_FILE.']),
    ...(newest === undefined ? ['The key has no checkpoint of this log beside it.'] : []),
  ];
  return {
    ...verified,
    isRight: verified.isRight && more.length === 0,
    findings: [...verified.findings, ...more.map((text) => ({ isWrong: true, text }))],
  };
}

/** Whether a log names its own receipt. With another one nothing more would be signed, or sealed for the first time once more. */
function isBeginOf(log: Log | undefined, receipts: readonly (readonly [position: number, text: string])[]): boolean {
  const [, text] = receipts.find(([position]) => position === log?.receipt) ?? [];
  return text?.includes(`"log":${JSON.stringify(log?.origin)}`) === true;
}

/** How many changes are so, and the first of them. */
function sentenceOf(found: readonly UnknownEntry[], what: string): string[] {
  if (found.length === 0) return [];
  const count = `${found.length}${found.length === maxFound ? ' or more' : ''}`;
  const examples = found.slice(0, 3).map(({ entity, entityId, at }) => `${entity} ${entityId} at ${timeOf(at)}`);
  return [`${count} changes ${what}: ${examples.join(', ')}.`];
}

function timeOf(at: number): string {
  return Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : String(at);
}
