import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import type { Database } from '../../postgres/database.ts';
import type { ReadBundle } from '../bundle/lines.ts';
import { parseCheckpoint } from '../log/checkpoint.ts';
import { readReceiptsBetween } from '../log/entry-store.ts';
import { readTreeSize } from '../log/leaf-store.ts';
import { type Log, readLog } from '../log/log-store.ts';
import { parseReceipt } from '../log/receipt-text.ts';
import { findUnderived } from './derived-columns.ts';
import { findMisnamed } from './misnamed.ts';
import { findUnknownEntries, findWrongPlaces, findWrongTiles, type UnknownEntry } from './unknown-entries.ts';
import type { Verdict } from './verdicts.ts';
import { type Verification, verifyBundle } from './verify-bundle.ts';

export interface CheckOptions {
  readonly db: Database;
  readonly readBundle: ReadBundle;
  /** Documents, at most `limit`, that the search for names does not find. */
  readonly findMisfiled: (db: Database, tenant: string, limit: number) => Promise<readonly string[]>;
  /** The verifier key of the tenant's log, which does not come from the database. */
  readonly key: string;
  /** The newest checkpoint of the log beside the key; undefined: it is not known there. */
  readonly newest: string | undefined;
}

/** Entries reported of each kind. */
const maxFound = 100;

/**
 * Verifies the history of a tenant as it is in the database now. Receipts are accepted, since the operator who checks
 * wrote them. Throws an OperatorError where it cannot be checked yet.
 */
export async function checkHistory(
  tenant: string,
  { db, readBundle, findMisfiled, key, newest }: CheckOptions,
  report: (verdict: Verdict) => void,
): Promise<Verification> {
  const lost = await findSetBack(db, tenant, newest);
  if (lost !== undefined) {
    return { isRight: false, findings: [{ isWrong: true, text: lost }], counts: new Map(), receipts: [] };
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
  const verified = await verifyBundle(read, { keys: [key], oldCheckpoint: newest, accept }, report);
  const log = await readLog(db, tenant);
  const erasures = await findMissingErasures(db, tenant, receipts);
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
    ...(await findMisfiled(db, tenant, maxFound)).map(
      (name) => `The search for names of documents does not find ${name} by its last name.`,
    ),
    ...erasures.map((name) => `The list of erasures does not have the one of the receipt ${name}.`),
    ...(isBeginOf(log, receipts) ? [] : ['The log does not name the receipt with which it begins.']),
    ...(log?.vkey === key ? [] : ['The verifier key in the database is not the one of ANNALS_PROOF_KEY_FILE.']),
    ...(newest === undefined ? ['The key has no checkpoint of this log beside it.'] : []),
  ];
  return {
    ...verified,
    isRight: verified.isRight && more.length === 0,
    findings: [
      ...verified.findings,
      ...more.map((text) => ({ isWrong: true, text })),
      ...receipts
        .flatMap(([position, text]) => setBackBy(position, text))
        .map((text) => ({ isWrong: false, isRemark: true, text })),
    ],
  };
}

/**
 * Says that the key signed more than the database has: then nothing else is looked at. Throws an OperatorError where
 * the database has it all and publishes less, which the next checkpoint mends: a signer may just have been killed.
 */
async function findSetBack(db: Database, tenant: string, newest: string | undefined): Promise<string | undefined> {
  const signed = newest === undefined ? undefined : parseCheckpoint(newest)?.size;
  // A log is read after what the key signed: a checkpoint that is published just now is no finding.
  const log = await readLog(db, tenant);
  if (signed === undefined || log === undefined || log.size >= signed) return undefined;
  const size = await readTreeSize(db, tenant);
  if (size < signed) {
    return `The database was set back: the key signed ${signed} positions of this log, and the database has ${size} of them.`;
  }
  throw new OperatorError(
    `the checkpoint in the database was set back: it has ${log.size} positions, and the key signed ${signed} of this log. The service publishes the newest one again`,
  );
}

/** The sentence about a database that was set back, if the receipt is of that. */
function setBackBy(position: number, text: string): string[] {
  const receipt = parseReceipt(position, text);
  if (receipt?.what !== 'restore' || receipt.earlierLog === undefined) return [];
  const { at, before } = JSON.parse(text) as { at?: unknown; before?: { checkpoint?: unknown } };
  const signed = parseCheckpoint(String(before?.checkpoint))?.size;
  const { origin, kept } = receipt.earlierLog;
  return [
    `The database, or what is beside the key, was set back before ${String(at)} (${receipt.name}): of the ${signed ?? 'unknown number of'} positions that the key had signed of ${origin}, it surely had ${kept}.`,
  ];
}

/**
 * Receipts of erasures that the list of erasures does not have: their names. Those of older versions do not say which
 * it was.
 */
async function findMissingErasures(
  db: Database,
  tenant: string,
  receipts: readonly (readonly [position: number, text: string])[],
): Promise<string[]> {
  const named = receipts.flatMap(([position, text]) => {
    const receipt = parseReceipt(position, text);
    if (receipt?.what !== 'erasure') return [];
    const { erasure } = JSON.parse(text) as { erasure?: unknown };
    return typeof erasure === 'string' ? [{ name: receipt.name, erasure }] : [];
  });
  const { rows } = await sql<{ erasure: string }>`
    select erasure::text as erasure from change_erasure where tenant = ${tenant}`.execute(db);
  const known = new Set(rows.map(({ erasure }) => erasure));
  return named.filter(({ erasure }) => !known.has(erasure)).map(({ name }) => name);
}

/**
 * Whether a log names its own receipt. With another one nothing more would be signed, or sealed for the first time once
 * more.
 */
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
