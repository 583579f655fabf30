import { isUtf8 } from 'node:buffer';
import type { CommitmentVersion } from '../log/fields.ts';
import { decodeBase64 } from '../log/note.ts';
import { hashBytes, hashesOf } from '../log/tiles.ts';

/** A fault of a file that is to be verified: it is not whole, or not a bundle. The message follows "the bundle". */
export class BundleFault extends Error {
  override name = 'BundleFault';
}

/** The name and version of the format. */
export const bundleFormat = 'annals-bundle-v1';

export interface BundleHeader {
  readonly kind: 'header';
  readonly checkpoint: string;
  /** The requested positions. */
  readonly from: number;
  readonly to: number;
  /** Null: all entries between them. */
  readonly q: string | null;
}

/** A field of an entry: its text, null where the entry has none, or the hash of one that is not shown. */
export type BundleField = string | null | { readonly hash: Buffer };

export interface BundleEntry {
  readonly kind: 'entry';
  readonly position: number;
  readonly commitment: Buffer;
  readonly version: CommitmentVersion;
  readonly related: number;
  readonly paths: number;
  readonly fields: readonly BundleField[];
  readonly cover: readonly Buffer[];
}

export type BundleLine =
  | BundleHeader
  | BundleEntry
  /** The text of a receipt, which the tree has at `position`. */
  | { readonly kind: 'receipt text'; readonly position: number; readonly text: string }
  | { readonly kind: 'gone'; readonly position: number; readonly commitment: Buffer }
  | { readonly kind: 'receipt'; readonly position: number; readonly leaf: Buffer }
  | { readonly kind: 'none'; readonly position: number }
  | { readonly kind: 'hashes'; readonly from: number; readonly hashes: readonly Buffer[] }
  /** The hash of the block of 256 positions that ends here. */
  | { readonly kind: 'tile'; readonly index: number; readonly hash: Buffer }
  | { readonly kind: 'end'; readonly size: number };

/** What a line of a bundle says, without its newline. Throws a BundleFault for anything else. */
export function parseLine(line: Buffer): BundleLine {
  if (!isUtf8(line)) throw new BundleFault('has a line that is not UTF-8');
  const members = membersOf(line.toString());
  const has = (...names: string[]) =>
    names.length === Object.keys(members).length && names.every((name) => Object.hasOwn(members, name));
  if (has('format', 'checkpoint', 'from', 'to', 'q')) {
    if (members.format !== bundleFormat) throw new BundleFault(`is not of the format ${bundleFormat}`);
    const q = members.q === null ? null : textOf(members.q);
    const [from, to] = [countOf(members.from), countOf(members.to)];
    return { kind: 'header', checkpoint: textOf(members.checkpoint), from, to, q };
  }
  if (has('receiptAt', 'receipt')) {
    return { kind: 'receipt text', position: countOf(members.receiptAt), text: textOf(members.receipt) };
  }
  if (has(...entryMembers)) return entryOf(members, 1);
  if (has(...entryMembers, 'version') && members.version === 2) return entryOf(members, 2);
  if (has('position', 'commitment')) {
    return { kind: 'gone', position: countOf(members.position), commitment: hashOf(members.commitment) };
  }
  if (has('position', 'receipt', 'leaf') && members.receipt === true) {
    return { kind: 'receipt', position: countOf(members.position), leaf: hashOf(members.leaf) };
  }
  if (has('position', 'none') && members.none === true) return { kind: 'none', position: countOf(members.position) };
  if (has('positions', 'hashes')) {
    const [from, to, ...more] = listOf(members.positions).map(countOf);
    const hashes = hashesOf(bytesOf(members.hashes));
    if (from === undefined || to === undefined || more.length > 0 || hashes.length !== to - from + 1) throw malformed();
    return { kind: 'hashes', from, hashes };
  }
  if (has('tile', 'hash')) return { kind: 'tile', index: countOf(members.tile), hash: hashOf(members.hash) };
  if (has('end')) return { kind: 'end', size: countOf(members.end) };
  throw malformed();
}

const entryMembers = ['position', 'commitment', 'related', 'paths', 'fields', 'cover'];

function entryOf(members: Record<string, unknown>, version: CommitmentVersion): BundleEntry {
  const fields = listOf(members.fields).map((field): BundleField => {
    if (typeof field === 'string') return textOf(field);
    if (field === null) return field;
    const { hash, ...more } = objectOf(field);
    if (Object.keys(more).length > 0) throw malformed();
    return { hash: hashOf(hash) };
  });
  return {
    kind: 'entry',
    position: countOf(members.position),
    commitment: hashOf(members.commitment),
    version,
    related: countOf(members.related),
    paths: countOf(members.paths),
    fields,
    cover: listOf(members.cover).map(hashOf),
  };
}

function membersOf(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw malformed();
  }
  // Other readers must read the same file alike, and JSON.parse keeps only the last of two members with one name.
  if (JSON.stringify(value) !== text) throw malformed();
  return objectOf(value);
}

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed();
  return value as Record<string, unknown>;
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed();
  return value;
}

function textOf(value: unknown): string {
  // Half of a surrogate pair would be hashed as U+FFFD.
  if (typeof value !== 'string' || !value.isWellFormed()) throw malformed();
  return value;
}

function countOf(value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw malformed();
  return value;
}

function hashOf(value: unknown): Buffer {
  const bytes = bytesOf(value);
  if (bytes.length !== hashBytes) throw malformed();
  return bytes;
}

function bytesOf(value: unknown): Buffer {
  const bytes = decodeBase64(textOf(value));
  if (bytes === undefined || bytes.length % hashBytes !== 0) throw malformed();
  return bytes;
}

function malformed(): BundleFault {
  return new BundleFault('has a line that is none of a bundle');
}

export interface BundleRequest {
  /** The first and the last position to show; default: all. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  /** Of these positions the changes that match; there is no default window. */
  readonly q?: string | undefined;
  readonly withContext?: boolean;
  /** Goes on with a block (of 256, from 0 on) in a bundle up to this size of which the blocks before were read. */
  readonly resume?: { readonly size: number; readonly block: number } | undefined;
}

/** The lines of a bundle, which `annals verify` judges: what was altered is in them as it is now. */
export type ReadBundle = (tenant: string, request: BundleRequest) => AsyncGenerator<BundleLine>;
