import type { BundleEntry, BundleLine } from '../../../src/proof/bundle/lines.ts';
import { signCheckpoint } from '../../../src/proof/log/checkpoint.ts';
import { commitmentOfEntry, entryLeaf, hashField, noneLeaf, receiptLeaf } from '../../../src/proof/log/commitment.ts';
import { type CommittedEntry, countOfFields, fieldsOf, labelsOf } from '../../../src/proof/log/fields.ts';
import { hashLeaf, rootOf } from '../../../src/proof/log/merkle.ts';
import { formatVerifierKey, type Signer } from '../../../src/proof/log/note.ts';
import { newSeed, saltCover, saltsOf } from '../../../src/proof/log/salts.ts';
import { signerOf } from './signers.ts';

// Bundles as the service would write them, made without a database.

export const log = signerOf('example.com/log/1');
export const key = formatVerifierKey(log);

export const entryAt = (position: number): CommittedEntry => ({
  identity: position.toString(16).padStart(32, '0'),
  at: 1_700_000_000_000 + position,
  type: 'update',
  entity: 'product',
  entityId: `p${position % 7}`,
  name: position % 3 === 0 ? `Name\u2028${position}` : null,
  schemaVersion: null,
  actor: 'jane',
  actorId: position % 4 === 0 ? `u-${position % 3}` : null,
  onBehalfOfName: position % 8 === 0 ? 'Acme Ltd' : null,
  onBehalfOfId: position % 16 === 0 ? 'c-1' : null,
  correlationId: position % 9 === 0 ? `req-${position}` : null,
  context: position % 2 === 0 ? '{"ip":"127.0.0.1"}' : null,
  recordedBy: '{"way":"import"}',
  marks: null,
  related: position % 5 === 0 ? '[{"entity":"order","entityId":"o1"}]' : null,
  paths: `{"price":{"before":${position},"after":${position}.50},"a.b":{"after":"x"}}`,
});

export type Leaf = { line: BundleLine & { position: number }; hash: Buffer };

export function entryOf(
  position: number,
  hidden: readonly string[] = ['identity', 'context'],
  entry = entryAt(position),
): Leaf {
  const fields = fieldsOf(entry);
  const count = countOfFields(fields);
  const seed = newSeed();
  const salts = saltsOf({ seed }, count);
  const labels = labelsOf(fields);
  const commitment = commitmentOfEntry(fields, seed);
  const shown = labels.map((label) => !hidden.includes(label));
  const line: BundleEntry = {
    kind: 'entry',
    position,
    commitment,
    version: fields.version,
    related: fields.related,
    paths: fields.paths,
    fields: labels.map((label, index) => {
      const text = fields.texts[index] ?? null;
      return shown[index] === true ? text : { hash: hashField(label, text, salts[index] ?? Buffer.alloc(32)) };
    }),
    cover: saltCover({ seed }, count, shown),
  };
  return { line, hash: hashLeaf(entryLeaf(position, commitment)) };
}

export const goneOf = (position: number): Leaf => {
  const { line, hash } = entryOf(position);
  return { line: { kind: 'gone', position, commitment: (line as BundleEntry).commitment }, hash };
};
export const noneOf = (position: number): Leaf => ({
  line: { kind: 'none', position },
  hash: hashLeaf(noneLeaf(position)),
});
export const receiptOf = (position: number, body: object): Leaf & { text: string } => {
  const text = JSON.stringify({ at: '2026-01-01T00:00:00Z', by: 'operator', ...body });
  const hash = hashLeaf(receiptLeaf(position, text));
  return { line: { kind: 'receipt', position, leaf: hash }, hash, text };
};

export interface Made {
  readonly lines: BundleLine[];
  readonly leaves: Leaf[];
}

/** A bundle of these leaves, as the service would write it. */
export function bundleOf(
  leaves: readonly (Leaf & { text?: string })[],
  signer: Signer = log,
  q: string | null = null,
): Made {
  const root = rootOf(leaves.map(({ hash }) => hash));
  const checkpoint = signCheckpoint({ origin: signer.name, size: leaves.length, root }, signer);
  const lines: BundleLine[] = [
    { kind: 'header', checkpoint, from: 1, to: leaves.length, q },
    ...leaves.flatMap(({ line, text }) =>
      text === undefined ? [] : [{ kind: 'receipt text' as const, position: line.position, text }],
    ),
    ...leaves.flatMap(({ line }, place): BundleLine[] => {
      if ((place + 1) % 256 !== 0) return [line];
      const hash = rootOf(leaves.slice(place - 255, place + 1).map((leaf) => leaf.hash));
      return [line, { kind: 'tile', index: (place + 1) / 256 - 1, hash }];
    }),
    { kind: 'end', size: leaves.length },
  ];
  return { lines, leaves: [...leaves] };
}

export const checkpointOf = ({ lines }: Made) => (lines[0]?.kind === 'header' ? lines[0].checkpoint : '');
export const first = receiptOf(1, { what: 'first sealing', positions: [] });
export const entries = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, place) => entryOf(from + place));
export const sound = bundleOf([first, ...entries(2, 600)]);
/** For tests with many variants. */
export const short = bundleOf([first, ...entries(2, 20)]);
