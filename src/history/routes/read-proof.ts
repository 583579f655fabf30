import { sql } from 'kysely';
import { AnnalsError } from '../../core/errors.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { BundleLine } from '../../proof/bundle/lines.ts';
import { provenEntry, type Redaction } from '../../proof/bundle/proven-entry.ts';
import { formatLine } from '../../proof/bundle/write-bundle.ts';
import { readCommitted, readReceiptsBetween } from '../../proof/log/entry-store.ts';
import { type Leaf, leavesOf, readLeaves } from '../../proof/log/leaf-store.ts';
import { readNodes, signedLog } from '../../proof/log/log-store.ts';
import { formatInclusionProof, hashOfRange, inclusionRanges } from '../../proof/log/merkle.ts';
import { entriesOfRow, readPlaces } from '../../recording/positions.ts';
import { changeIsGone, type EntryKey } from '../entries/entry-ref.ts';
import { readHorizon } from '../retention/retention.ts';

export interface ProofAsked {
  /** The position, or the entry. */
  readonly of: number | EntryKey;
  /** Whether the change itself is shown, and its context. */
  readonly shows: 'nothing' | 'change' | 'context';
  /** Milliseconds. */
  readonly now: number;
}

/**
 * The proof that the newest checkpoint has the leaf of a position, as C2SP's tlog-proof has it. Its extra data is what
 * the leaf was made of. Throws resource_not_found where no checkpoint has the position yet, and where its entry is
 * gone.
 */
export async function readProof(db: Database, tenant: string, asked: ProofAsked): Promise<string> {
  return await inTransaction(
    db,
    async (transaction) => {
      const { size, checkpoint } = await signedLog(transaction, tenant);
      const { of } = asked;
      const position = typeof of === 'number' ? of : await positionOf(transaction, tenant, of);
      if (position > size) throw notFound(`The newest checkpoint of this history has ${size} positions.`);
      const [leaf] = leavesOf(await readLeaves(transaction, tenant, position, position));
      if (leaf === undefined) throw new Error(`the leaf of a position of ${tenant} is missing`);
      const line = await lineOf(transaction, tenant, leaf, asked);
      const read = readNodes(transaction, tenant, size);
      const index = position - 1;
      const hashes = await Promise.all(inclusionRanges(index, size).map((range) => hashOfRange(range, read)));
      return formatInclusionProof({ extra: Buffer.from(formatLine(line)), index, hashes, checkpoint });
    },
    { isolation: 'repeatable read' },
  );
}

/**
 * The position of an entry; one behind all where it has none yet. Throws resource_not_found where the entry is gone.
 */
async function positionOf(
  transaction: DatabaseTransaction,
  tenant: string,
  { at, identity }: EntryKey,
): Promise<number> {
  const { rows } = await sql<{ position: number | null }>`
    select p.first + p.number - 1 as position
      from change_entry e
      left join lateral (
        select p.first, entry.number from change_position p cross join lateral ${entriesOfRow} as entry
          where p.tenant = ${tenant} and p.oldest <= e.at and p.newest >= e.at
            and entry.at = e.at and entry.sequence = e.sequence
      ) p on true
      where e.tenant = ${tenant} and e.at = ${at}::bigint and e.identity = ${identity}::uuid`.execute(transaction);
  if (rows[0] === undefined) throw changeIsGone();
  return rows[0].position ?? Number.POSITIVE_INFINITY;
}

/** What the leaf was made of, as a bundle has it. */
async function lineOf(
  transaction: DatabaseTransaction,
  tenant: string,
  leaf: Leaf,
  { shows, now }: ProofAsked,
): Promise<BundleLine> {
  const { position, kind, commitment } = leaf;
  if (kind === 'none') throw notFound('The change at this position was gone before it was sealed.');
  if (kind === 'receipt') {
    const [receipt] = await readReceiptsBetween(transaction, tenant, position, position);
    if (receipt === undefined) throw new Error(`a receipt of ${tenant} is missing`);
    return { kind: 'receipt text', position, text: receipt[1] };
  }
  if (shows === 'nothing') return { kind: 'gone', position, commitment };
  const places = await readPlaces(transaction, tenant, position - 1, 1);
  const horizon = await readHorizon(transaction, tenant, now);
  const [entry] = await readCommitted(
    transaction,
    tenant,
    places.filter(({ at }) => at >= horizon),
    Number.MAX_SAFE_INTEGER,
  );
  if (entry == null) throw notFound('The change at this position is not there any more.');
  const { rows } = await sql<Redaction>`
    select hidden, hashes, cover from proof_redaction
      where tenant = ${tenant} and position = ${position}::bigint`.execute(transaction);
  return provenEntry(leaf, entry, rows[0], shows === 'context');
}

function notFound(message: string): AnnalsError {
  return new AnnalsError('resource_not_found', message);
}
