import { sql } from 'kysely';
import { OperatorError } from '../../core/errors.ts';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';
import type { BundleLine, ReadBundle } from '../../proof/bundle/lines.ts';
import { provenEntry, type Redaction, withErasedFields } from '../../proof/bundle/proven-entry.ts';
import { readCommitted } from '../../proof/log/entry-store.ts';
import { hashOfLeaf, type Leaf, leavesOf, readLeaves } from '../../proof/log/leaf-store.ts';
import { readLog, readTile } from '../../proof/log/log-store.ts';
import { hashBytes, hashesOf, tileWidth } from '../../proof/log/tiles.ts';
import { parseQuery } from '../../query/parse.ts';
import { withPlainRegexes } from '../../query/plain-regex.ts';
import { lastPosition, type PlaceOfPosition, readPlaces } from '../../recording/positions.ts';
import { readReceipts } from '../../recording/receipt-store.ts';
import type { DictionaryCache } from '../search/names/dictionary-cache.ts';
import { changelogDialect } from '../search/plan/dialect.ts';
import { inHistorySnapshot, type ReadDependencies } from '../search/snapshot.ts';
import { findMatches } from './match-store.ts';

export interface BundleReading extends ReadDependencies {
  readonly now: () => number;
  readonly dictionaries: DictionaryCache;
}

/** Bytes of the texts of entries that are read at once, one entry apart. */
const maxBytes = 8 * 1024 * 1024;

/**
 * Reads bundles up to the newest checkpoint, in portions of 256 positions, each in a snapshot of its own. Throws an
 * OperatorError where nothing is sealed, where receipts are not sealed yet, which say why something is gone, and while
 * a person is erased.
 */
export function createReadBundle({ now, dictionaries, ...reading }: BundleReading): ReadBundle {
  const { db, regexes } = reading;

  return async function* read(tenant, { from = 1, to, q, withContext = false, resume }) {
    const query = q === undefined ? undefined : withPlainRegexes(parseQuery(q, changelogDialect));
    const log = await readLog(db, tenant);
    if (log?.checkpoint == null) throw new OperatorError(`no checkpoint of ${tenant} has been signed yet`);
    const { checkpoint } = log;
    const size = resume?.size ?? log.size;
    const last = Math.min(to ?? size, size);
    if (from > last) throw new OperatorError(`the checkpoint has ${size} positions, none of which were asked for`);
    await requireErasuresEnded(db, tenant);
    await requireSealedReceipts(db, tenant, size);
    if (resume === undefined) yield { kind: 'header', checkpoint, from, to: last, q: q ?? null };
    for (let after = 0; resume === undefined; ) {
      const receipts = await readReceipts(db, tenant, { after, limit: receiptsAtOnce });
      for (const { position, body } of receipts) yield { kind: 'receipt text', position, text: body };
      after = receipts.at(-1)?.position ?? after;
      if (receipts.length < receiptsAtOnce) break;
    }
    let tiles: Buffer = Buffer.alloc(0);
    const firstBlock = resume?.block ?? 0;
    for (let index = firstBlock; index * tileWidth < size; index += 1) {
      const [begin, end] = [index * tileWidth + 1, Math.min((index + 1) * tileWidth, size)];
      if (end < from || begin > last) {
        const leaves = [...leavesOf(await readLeaves(db, tenant, begin, end))];
        yield { kind: 'hashes', from: begin, hashes: whole(leaves, begin, end).map(hashOfLeaf) };
      } else {
        yield* await inHistorySnapshot(
          reading,
          { tenant, now: now() },
          await dictionaries.get(tenant),
          async (snapshot) => {
            const block = await readBlock(snapshot.transaction, tenant, begin, end);
            const places = block.places.filter(({ position, at }) => at >= 0 && position >= from && position <= last);
            const matching = query && (await findMatches(snapshot, { tenant, query, regexes }, places, tileWidth));
            const matched = matching && new Set(matching.map(({ position }) => position));
            const isShown = ({ position, kind }: Leaf) =>
              position >= from &&
              position <= last &&
              (matched === undefined || kind !== 'entry' || matched.has(position));
            return await linesOfBlock(block, isShown, withContext);
          },
        );
      }
      if (end % tileWidth !== 0) break;
      if (index % tileWidth === 0 || index === firstBlock) {
        const tile = Math.floor(index / tileWidth);
        const width = Math.min(tileWidth, Math.floor(size / tileWidth) - tile * tileWidth);
        tiles = await readTile(db, tenant, { level: 1, index: tile, width });
      }
      const hash = hashesOf(tiles)[index % tileWidth] ?? Buffer.alloc(hashBytes);
      yield { kind: 'tile', index, hash };
    }
    yield { kind: 'end', size };
    // What was dropped or erased while this was read has a receipt that is not in it.
    await requireSealedReceipts(db, tenant, size);
  };
}

/** A receipt has 60,000 bytes at most. */
const receiptsAtOnce = 100;

/**
 * A receipt that has its position waits to be sealed. One beyond all positions was made up, and the reader is to find
 * it.
 */
async function requireSealedReceipts(db: Database, tenant: string, size: number): Promise<void> {
  const last = await lastPosition(db, tenant);
  const [receipt] = await readReceipts(db, tenant, { after: size, limit: 1 });
  if (receipt === undefined || receipt.position > last.position) return;
  const { position } = receipt;
  throw new OperatorError(
    `the receipt at position ${position} is not sealed yet; the next checkpoint comes within a minute`,
  );
}

/** The names in dictionaries go last, so until then entries have what their redactions hide. */
async function requireErasuresEnded(db: Database, tenant: string): Promise<void> {
  const { rows } = await sql`
    select from change_erasure where tenant = ${tenant} and ended_at is null limit 1`.execute(db);
  if (rows.length === 0) return;
  throw new OperatorError(
    `an erasure of ${tenant} has not ended: wait for it, or run the same \`annals erase\` again if it was interrupted`,
  );
}

interface Block {
  readonly leaves: readonly Leaf[];
  readonly places: readonly PlaceOfPosition[];
  readonly redactions: ReadonlyMap<number, Redaction>;
  readonly read: (places: readonly PlaceOfPosition[]) => ReturnType<typeof readCommitted>;
}

async function readBlock(transaction: DatabaseTransaction, tenant: string, begin: number, end: number): Promise<Block> {
  const leaves = whole([...leavesOf(await readLeaves(transaction, tenant, begin, end))], begin, end);
  const places = await readPlaces(transaction, tenant, begin - 1, end - begin + 1);
  const { rows } = await sql<Redaction & { position: number }>`
    select position, hidden, hashes, cover from proof_redaction
      where tenant = ${tenant} and position between ${begin}::bigint and ${end}::bigint`.execute(transaction);
  const redactions = new Map(rows.map(({ position, ...redaction }) => [position, redaction]));
  return { leaves, places, redactions, read: (some) => readCommitted(transaction, tenant, some, maxBytes) };
}

/** Leaves that somebody removed are there without a commitment: so the reader finds their block wrong. */
function whole(leaves: readonly Leaf[], begin: number, end: number): Leaf[] {
  return Array.from({ length: end - begin + 1 }, (_, index): Leaf => {
    const none = {
      position: begin + index,
      kind: 'entry',
      commitment: Buffer.alloc(hashBytes),
      seed: undefined,
    } as const;
    return leaves[index] ?? none;
  });
}

async function linesOfBlock(
  { leaves, places, redactions, read }: Block,
  isShown: (leaf: Leaf) => boolean,
  withContext: boolean,
): Promise<BundleLine[]> {
  const slice = new TimeSlice();
  const placeOf = new Map(places.map((place) => [place.position, place]));
  const entries = new Map<number, Awaited<ReturnType<Block['read']>>[number]>();
  const wanted = leaves.filter((leaf) => leaf.kind === 'entry' && isShown(leaf));
  const wantedPlaces = wanted.flatMap(({ position }) => placeOf.get(position) ?? []);
  for (let next = 0; next < wantedPlaces.length; ) {
    const found = await read(wantedPlaces.slice(next));
    for (const [index, entry] of found.entries()) entries.set(wantedPlaces[next + index]?.position ?? 0, entry);
    next += found.length;
  }
  const lines: BundleLine[] = [];
  let run: { kind: 'hashes'; from: number; hashes: Buffer[] } | undefined;
  for (const leaf of leaves) {
    if (slice.isDue) await slice.rest();
    const { position, kind, commitment } = leaf;
    if (!isShown(leaf)) {
      if (run === undefined) {
        run = { kind: 'hashes', from: position, hashes: [] };
        lines.push(run);
      }
      run.hashes.push(hashOfLeaf(leaf));
      continue;
    }
    run = undefined;
    const entry = entries.get(position);
    if (kind === 'receipt') lines.push({ kind, position, leaf: commitment });
    else if (kind === 'none') lines.push({ kind, position });
    else if (!entry) lines.push({ kind: 'gone', position, commitment });
    else {
      const redaction = redactions.get(position);
      lines.push(provenEntry(leaf, entry, redaction && withErasedFields(entry, redaction), withContext));
    }
  }
  return lines;
}
