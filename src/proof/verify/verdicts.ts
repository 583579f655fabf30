import type { BundleLine } from '../bundle/lines.ts';
import { hiddenFields } from './verify-proof.ts';
import type { PositionRange, TreeResult } from './verify-tree.ts';

/** Capitals: something is wrong. */
export type VerdictWord =
  | 'verified'
  | 'redacted'
  | 'erased'
  | 'expired'
  | 'receipt'
  | 'not shown'
  | 'MISSING'
  | 'CHANGED'
  | 'LOST';

export interface Verdict {
  /** The first and the last position that it is about. */
  readonly from: number;
  readonly to: number;
  readonly verdict: VerdictWord;
  /** The name of the receipt that says so. */
  readonly receipt?: string;
  /** The fields that were redacted. */
  readonly fields?: readonly string[];
  /** Why. */
  readonly reason?: string;
}

/** The verdict on each position of a bundle whose tree was verified before. */
export async function* verdictsOf(lines: AsyncIterable<BundleLine>, tree: TreeResult): AsyncGenerator<Verdict> {
  const { header, receipts, wrongReceipts } = tree;
  const wrong = new Ranges(tree.wrongBlocks);
  for await (const line of lines) {
    if (line.kind === 'hashes') yield* runOf(line.from, line.from + line.hashes.length - 1);
    else if (line.kind === 'entry' || line.kind === 'gone' || line.kind === 'none' || line.kind === 'receipt') {
      yield verdictOn(line);
    }
  }

  function verdictOn(line: BundleLine & { readonly position: number }): Verdict {
    const { position } = line;
    const is = (verdict: VerdictWord, more: Partial<Verdict> = {}): Verdict => ({
      from: position,
      to: position,
      verdict,
      ...more,
    });
    if (line.kind === 'entry') {
      const hidden = hiddenFields(line);
      if (hidden === 'changed') return is('CHANGED', { reason: 'not what was sealed' });
      if (wrong.has(position)) return is('CHANGED', { reason: outOfTree });
      if (hidden.length === 0) return is('verified');
      const receipt = receipts.find(position, 'erasure');
      if (receipt === undefined) return is('CHANGED', { fields: hidden, reason: 'fields hidden without a receipt' });
      return is('redacted', { receipt: receipt.name, fields: hidden });
    }
    if (wrongReceipts.has(position)) return is('CHANGED', { reason: 'a receipt, and not the one that was sealed' });
    if (wrong.has(position)) return is('CHANGED', { reason: outOfTree });
    if (line.kind === 'receipt') return is('receipt');
    const dropped = receipts.find(position, 'retention', ...(line.kind === 'none' ? ['first sealing'] : []));
    if (dropped !== undefined) return is('expired', { receipt: dropped.name });
    const erased = receipts.find(position, 'erasure');
    if (erased !== undefined) return is('erased', { receipt: erased.name });
    return is('MISSING', { reason: 'not there any more, and no receipt says why' });
  }

  function* runOf(from: number, to: number): Generator<Verdict> {
    const isWhole = header.q === null;
    for (const part of wrong.split(from, to)) {
      if (part.isInside) yield { ...boundsOf(part), verdict: 'CHANGED', reason: outOfTree };
      else if (!isWhole || part.to < header.from || part.from > header.to)
        yield { ...boundsOf(part), verdict: 'not shown' };
      else {
        // The file leaves out what it was to show.
        const [first, last] = [Math.max(part.from, header.from), Math.min(part.to, header.to)];
        if (part.from < first) yield { from: part.from, to: first - 1, verdict: 'not shown' };
        yield { from: first, to: last, verdict: 'MISSING', reason: 'left out of the file' };
        if (last < part.to) yield { from: last + 1, to: part.to, verdict: 'not shown' };
      }
    }
  }
}

/** Whether the verdict says that something is wrong. */
export function isWrong({ verdict }: Pick<Verdict, 'verdict'>): boolean {
  return verdict === verdict.toUpperCase();
}

/** A verdict as a line of text. */
export function lineOf({ from, to, verdict, receipt, fields, reason }: Verdict): string {
  const places = from === to ? `${from}` : `${from} to ${to}`;
  const details = [reason, fields?.join(', '), receipt].filter((detail) => detail !== undefined);
  return printable(`${verdict.padEnd(9)} ${places}: ${details.join('; ')}`);
}

/** Names of paths come from the file, and are not to steer a terminal, or turn a line round. */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}}`,
  );
}

const outOfTree = 'in a block that is not the one which was sealed';

function boundsOf({ from, to }: { from: number; to: number }) {
  return { from, to };
}

/** Ranges of positions in ascending order, none of which meet. */
class Ranges {
  readonly #ranges: readonly PositionRange[];
  // Positions are requested in ascending order.
  #next = 0;

  constructor(ranges: readonly PositionRange[]) {
    this.#ranges = ranges;
  }

  has(position: number): boolean {
    while ((this.#ranges[this.#next]?.[1] ?? Number.POSITIVE_INFINITY) < position) this.#next += 1;
    return (this.#ranges[this.#next]?.[0] ?? Number.POSITIVE_INFINITY) <= position;
  }

  /** The parts of a range that are inside of these and outside, in order. */
  *split(from: number, to: number): Generator<{ from: number; to: number; isInside: boolean }> {
    for (let at = from; at <= to; ) {
      const isInside = this.has(at);
      const [begin, end] = this.#ranges[this.#next] ?? [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
      const last = Math.min(to, isInside ? end : begin - 1);
      yield { from: at, to: last, isInside };
      at = last + 1;
    }
  }
}
