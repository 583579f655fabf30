import { hashField } from '../log/commitment.ts';
import type { StoredEntry } from '../log/entry-store.ts';
import { type CommittedEntry, countOfFields, type EntryFields, fieldsOf, labelAt, labelsOf } from '../log/fields.ts';
import type { Leaf } from '../log/leaf-store.ts';
import { type KnownSalts, saltCover, saltsOf } from '../log/salts.ts';
import { hashBytes, hashesOf } from '../log/tiles.ts';
import type { BundleEntry, BundleField } from './lines.ts';

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
 * An entry with its proof. Hides its identity, which may be a hash of the whole change, its context unless requested,
 * and what was erased. Where the proof is lost, no field has a hash that leads to the commitment.
 */
export function provenEntry(
  { position, commitment, seed }: Leaf,
  entry: CommittedEntry,
  redaction: Redaction | undefined,
  withContext: boolean,
): BundleEntry {
  const fields = fieldsOf(entry);
  const { version, related, paths, texts } = fields;
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
  return { kind: 'entry', position, commitment, version, related, paths, fields: lines, cover };
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

/**
 * The redaction without the hashes of fields that no erasure leaves so. Nothing proves the text of an erased field, so
 * a forged one would pass as erased: without its hash the entry counts as changed. So does an entry that does not say
 * what was erased.
 */
export function withErasedFields(entry: StoredEntry, redaction: Redaction): Redaction {
  const fields = fieldsOf(entry);
  const names = namesOf(entry.erased);
  const hashes = Buffer.from(redaction.hashes);
  for (const [place, index] of redaction.hidden.entries()) {
    const isThere = index < fields.texts.length;
    if (isThere && isErased(fields, index) && isNamed(names, fields, index)) continue;
    hashes.fill(0, place * hashBytes, (place + 1) * hashBytes);
  }
  return { ...redaction, hashes };
}

/** Whether all is erased of which an entry says so. */
export function isErasedAsSaid(entry: StoredEntry): boolean {
  if (entry.erased === null) return true;
  const fields = fieldsOf(entry);
  const erased = fields.texts.keys().filter((index) => isErased(fields, index));
  const names = new Set(erased.flatMap((index) => namesAt(fields, index)));
  return namesOf(entry.erased)?.every((name) => names.has(name)) === true;
}

/** Whether a text is one that an erasure puts in the place of a name or an id. */
export function isReplacement(text: string): boolean {
  return /^erased-[0-9a-f]{16}$/.test(text);
}

function isErased(fields: EntryFields, index: number): boolean {
  const text = fields.texts[index] ?? null;
  const label = labelAt(fields, index);
  switch (label) {
    case 'identity':
      // A hash under the key of the installation.
      return true;
    case 'context':
      return text === null;
    case 'before':
    case 'after':
      return text === '"[erased]"';
    case 'recordedBy': {
      const { by, sub } = JSON.parse(text ?? '{}') as { by?: string; sub?: string };
      return [by, sub].every((name) => name === undefined || isReplacement(name));
    }
    default:
      return text !== null && isReplacement(text);
  }
}

function isNamed(names: readonly string[] | undefined, fields: EntryFields, index: number): boolean {
  if (labelAt(fields, index) === 'identity') return names !== undefined;
  return names !== undefined && namesAt(fields, index).some((name) => names.includes(name));
}

/** How the history may call the field where it was erased. */
function namesAt(fields: EntryFields, index: number): string[] {
  const label = labelAt(fields, index);
  if (label === 'relatedEntityId') return ['related'];
  // An erasure by the name leaves the id beside it.
  if (label === 'onBehalfOfName') return ['onBehalfOf', 'onBehalfOf.name'];
  if (label === 'onBehalfOfId') return ['onBehalfOf'];
  if (label !== 'before' && label !== 'after') return [label];
  const path = fields.texts[label === 'before' ? index - 1 : index - 2];
  return [`paths.${path == null ? '' : JSON.parse(path)}`];
}

/** Undefined for what is no list of names. */
function namesOf(erased: string | null): readonly string[] | undefined {
  try {
    const names: unknown = JSON.parse(erased ?? '');
    return Array.isArray(names) ? names : undefined;
  } catch {
    return undefined;
  }
}
