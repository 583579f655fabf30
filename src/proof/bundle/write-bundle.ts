import type { BundleField, BundleHeader, BundleLine } from './lines.ts';
import { bundleFormat } from './lines.ts';

/** The text of a line of a bundle, with its newline. */
export function formatLine(line: BundleLine): string {
  return `${JSON.stringify(membersOf(line))}\n`;
}

function membersOf(line: BundleLine): object {
  switch (line.kind) {
    case 'header':
      return headerOf(line);
    case 'receipt text':
      return { receiptAt: line.position, receipt: line.text };
    case 'entry': {
      const { position, commitment, version, related, paths, fields, cover } = line;
      return {
        position,
        commitment: textOf(commitment),
        ...(version === 1 ? {} : { version }),
        related,
        paths,
        fields: fields.map(fieldOf),
        cover: cover.map(textOf),
      };
    }
    case 'gone':
      return { position: line.position, commitment: textOf(line.commitment) };
    case 'receipt':
      return { position: line.position, receipt: true, leaf: textOf(line.leaf) };
    case 'none':
      return { position: line.position, none: true };
    case 'hashes':
      return { positions: [line.from, line.from + line.hashes.length - 1], hashes: textOf(Buffer.concat(line.hashes)) };
    case 'tile':
      return { tile: line.index, hash: textOf(line.hash) };
    case 'end':
      return { end: line.size };
  }
}

function headerOf({ checkpoint, from, to, q }: BundleHeader): object {
  return { format: bundleFormat, checkpoint, from, to, q };
}

function fieldOf(field: BundleField): unknown {
  return typeof field === 'object' && field !== null ? { hash: textOf(field.hash) } : field;
}

function textOf(bytes: Buffer): string {
  return bytes.toString('base64');
}
