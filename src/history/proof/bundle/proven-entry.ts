import { hashField } from '../encoding/commitment.ts';
import { type CommittedEntry, countOfFields, fieldsOf, labelsOf } from '../encoding/fields.ts';
import { type KnownSalts, saltCover, saltsOf } from '../encoding/salts.ts';
import { hashBytes, hashesOf } from '../tlog/tiles.ts';
import type { Leaf } from '../tree/leaf-store.ts';
import type { BundleEntry, BundleField } from '../verify/lines.ts';

/** What is left of the proof of an entry of which a part was erased. */
export interface Redaction {
  /** The indexes of its hidden fields, in order. */
  readonly hidden: readonly number[];
  /** Their hashes, one after the other. */
  readonly hashes: Buffer;
  /** The cover of the others, one node after the other. */
  readonly cover: Buffer;
}

/**
 * An entry with what proves it. Its identity is hidden, since it may be a hash of all that was sent; so is its context, unless
 * it is asked for; and so is what was erased. Where the proof is lost, no field has a hash that leads to the commitment.
 */
export function provenEntry(
  { position, commitment, seed }: Leaf,
  entry: CommittedEntry,
  redaction: Redaction | undefined,
  withContext: boolean,
): BundleEntry {
  const fields = fieldsOf(entry);
  const { related, paths, texts } = fields;
  const count = countOfFields(fields);
  const labels = labelsOf(fields);
  const erased = new Map(redaction?.hidden.map((index, place) => [index, hashesOf(redaction.hashes)[place]]));
  const known = knownSalts(
    seed,
    redaction,
    labels.map((_, index) => !erased.has(index)),
  );
  const salts = known === undefined ? undefined : tried(() => saltsOf(known, count));
  const shown = labels.map(
    (label, index) => salts?.[index] != null && label !== 'identity' && (withContext || label !== 'context'),
  );
  const cover = known === undefined || salts === undefined ? [] : saltCover(known, count, shown);
  const lines = labels.map((label, index): BundleField => {
    const text = texts[index] ?? null;
    if (shown[index] === true) return text;
    const salt = salts?.[index];
    return { hash: erased.get(index) ?? (salt ? hashField(label, text, salt) : Buffer.alloc(hashBytes)) };
  });
  return { kind: 'entry', position, commitment, related, paths, fields: lines, cover };
}

function knownSalts(
  seed: Buffer | undefined,
  redaction: Redaction | undefined,
  shown: readonly boolean[],
): KnownSalts | undefined {
  if (redaction !== undefined) return { cover: hashesOf(redaction.cover), shown };
  return seed === undefined ? undefined : { seed };
}

/** Undefined where a redaction does not fit the entry: somebody changed one of them. */
function tried<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
