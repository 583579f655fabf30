import { AnnalsError } from '../../core/errors.ts';
import { ThreadLost } from '../../core/fairness/thread.ts';
import { uuidOf } from '../../core/text-hash.ts';
import type { Restriction } from '../../http/credentials.ts';
import { maxPieceBytes, piecesOf } from '../../pagination/pieces.ts';
import { maxLaterEntries } from '../../recording/rebuild/document-rebuild.ts';
import { documentTooLarge } from '../../recording/rebuild/document-tree.ts';
import {
  continueRebuild,
  isAnchorChunk,
  nothingRebuilt,
  type PartialRebuild,
  rebuildFromLater,
  rebuiltDocument,
} from '../../recording/rebuild/incremental-rebuild.ts';
import type { Place } from '../entries/entry-store.ts';
import type { Dictionary } from '../search/names/dictionary.ts';
import { type HistorySnapshot, kindsShown } from '../search/snapshot.ts';
import {
  type DocumentEntries,
  type EntryRange,
  findAnchor,
  measureEntries,
  readChunk,
  readName,
  readUntil,
} from './document-at-store.ts';

/** Which document, and when: at a moment (included, in milliseconds since 1970), or after its n-th change. */
export interface DocumentRequest {
  readonly entity: string;
  readonly entityId: string;
  readonly when: { readonly at: number } | { readonly changes: number };
}

/** A document as it was (contract 4). */
export interface DocumentAt {
  readonly at: number;
  readonly exists: boolean;
  readonly complete: boolean;
  readonly name: string | null;
  /** JSON text; undefined if the document does not exist. */
  readonly document: string | undefined;
  readonly changes: number;
  readonly lastChange: { readonly at: number; readonly type: string; readonly actor?: string } | undefined;
}

/** Maximum bytes of entries that are read for a document without a place for a large document. */
export const maxSmallBytes = 1024 * 1024;
const entriesAtOnce = 5_000;

/**
 * Reads a document as it was, as far as the caller may see it. Returns undefined if its entries are long and
 * `mayBeLarge` is false. Throws resource_not_found if it has no entry, or too few, and internal_service_error with a
 * message if it is too large for memory.
 */
export async function readDocumentAt(
  snapshot: HistorySnapshot,
  tenant: string,
  { entity, entityId, when, hide, actors }: DocumentRequest & Pick<Restriction, 'hide' | 'actors'>,
  mayBeLarge: boolean,
): Promise<DocumentAt | undefined> {
  const { transaction, horizon, dictionary } = snapshot;
  const kinds = (kindsShown(snapshot, entity) ?? []).map(({ id }) => id);
  const of: DocumentEntries = { transaction, tenant, document: uuidOf(entityId), kinds, since: horizon, hide };
  const { total, last, changes } = await readUntil(of, when);
  if (total === 0) throw new AnnalsError('resource_not_found', 'There is no change of this document.');
  if ('changes' in when && last === undefined) {
    throw new AnnalsError('resource_not_found', `There are only ${total} changes of this document.`);
  }
  const name = last === undefined ? null : await readName(of, last);
  let known: PartialRebuild;
  try {
    known = await rebuild(of, dictionary, last, mayBeLarge ? Number.POSITIVE_INFINITY : maxSmallBytes);
  } catch (error) {
    if (error instanceof TooManyBytes) return undefined;
    // The thread wanted more memory than it may have.
    if (error instanceof ThreadLost && error.isTooSlow && error.cause !== undefined) throw documentTooLarge();
    throw error;
  }
  const lastChange = last && {
    at: last.at,
    type: dictionary.kindOf.get(last.kind)?.type ?? '',
    ...(actors && { actor: dictionary.actorOf.get(last.actor)?.name ?? '' }),
  };
  const at = 'at' in when ? when.at : (last?.at ?? 0);
  return { at, ...rebuiltDocument(known), name, changes, lastChange };
}

/** The entries to read have more text than may be read. */
class TooManyBytes extends Error {}

/** Rebuilds the document from its entries. Throws TooManyBytes if those to read have more than `maxBytes` of text. */
async function rebuild(
  of: DocumentEntries,
  dictionary: Dictionary,
  last: Place | undefined,
  maxBytes: number,
): Promise<PartialRebuild> {
  const budget = { bytes: maxBytes };
  let known = nothingRebuilt;
  if (last !== undefined) {
    const from = await findSureAnchor(of, dictionary, last, maxBytes);
    for await (const range of rangesOf(of, { from, until: last }, budget)) {
      known = await continueRebuild(known, await readChunk(of, dictionary, range));
    }
  }
  if (known.isAnchored) return known;
  const from = last === undefined ? oldest : placeAfter(last);
  for await (const range of rangesOf(of, { from, until: undefined }, budget, maxLaterEntries)) {
    const found = await rebuildFromLater(known, await readChunk(of, dictionary, range));
    known = found.state;
    if (!found.hasMore) break;
  }
  return known;
}

const oldest: Place = { at: 0, sequence: 0 };

function placeAfter({ at, sequence }: Place): Place {
  return { at, sequence: sequence + 1 };
}

/** The newest anchor up to an entry; the oldest place if there is none. */
async function findSureAnchor(
  of: DocumentEntries,
  dictionary: Dictionary,
  last: Place,
  maxBytes: number,
): Promise<Place> {
  for (let until = last; ; ) {
    const found = await findAnchor(of, dictionary, until);
    if (found === undefined) return oldest;
    if (found.isSure) return found;
    if (found.bytes > maxBytes) throw new TooManyBytes();
    if (await isAnchorChunk(await readChunk(of, dictionary, { from: found, until: found }))) return found;
    until = { at: found.at, sequence: found.sequence - 1 };
  }
}

/** Divides the entries of a document into ranges of at most 4 MiB, or of one entry. Takes from the budget. */
async function* rangesOf(
  of: DocumentEntries,
  { from, until }: { from: Place; until: Place | undefined },
  budget: { bytes: number },
  max = Number.POSITIVE_INFINITY,
): AsyncGenerator<EntryRange> {
  let next = from;
  for (let left = max; left > 0; ) {
    const count = Math.min(left, entriesAtOnce);
    const measured = await measureEntries(of, { from: next, until }, count);
    const lengths = measured.map(({ bytes }) => bytes);
    budget.bytes -= lengths.reduce((sum, bytes) => sum + bytes, 0);
    if (budget.bytes < 0) throw new TooManyBytes();
    for (const piece of piecesOf(measured, lengths, maxPieceBytes)) {
      const [first] = piece;
      const end = piece.at(-1);
      if (first !== undefined && end !== undefined) yield { from: first, until: end };
    }
    const end = measured.at(-1);
    if (end === undefined || measured.length < count) return;
    next = placeAfter(end);
    left -= measured.length;
  }
}
