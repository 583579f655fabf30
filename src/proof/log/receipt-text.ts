/** What a receipt of a log says, as far as verifying needs it. */
export interface KnownReceipt {
  /** What was done and the receipt's own position, as `erasure@4021`. */
  readonly name: string;
  readonly position: number;
  readonly what: string;
  /** The positions concerned, each range with both ends, in order. */
  readonly ranges: readonly (readonly [from: number, to: number])[];
  /** Of the receipts that begin a log over the leaves of another one. */
  readonly earlierLog?: EarlierLog;
}

export interface EarlierLog {
  readonly origin: string;
  /** How many of its leaves the new log surely took over. */
  readonly kept: number;
}

/** Receipts with which a log begins that continues another one. */
const beginningsOfLogs = ['restore', 'new key'];

/** What a receipt's text says; undefined for a text that is no receipt of Annals. */
export function parseReceipt(position: number, text: string): KnownReceipt | undefined {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof body !== 'object' || body === null) return undefined;
  const { what, positions, before, kept } = body as Record<string, unknown>;
  if (typeof what !== 'string' || !/^[a-z ]{1,40}$/.test(what) || !Array.isArray(positions)) return undefined;
  const ranges = positions.filter(isRange);
  if (ranges.length !== positions.length) return undefined;
  const known = { name: `${what.replaceAll(' ', '-')}@${position}`, position, what, ranges };
  if (!beginningsOfLogs.includes(what)) return known;
  const origin = typeof before === 'object' && before !== null && 'origin' in before ? before.origin : undefined;
  return typeof origin === 'string' && isCount(kept) ? { ...known, earlierLog: { origin, kept } } : known;
}

/** Finds the receipt that says what became of a position. */
export class Receipts {
  readonly all: readonly KnownReceipt[];
  readonly #byKind = new Map<string, NamedRange[]>();

  constructor(receipts: readonly KnownReceipt[]) {
    this.all = receipts;
    for (const receipt of receipts) {
      const ranges = this.#byKind.get(receipt.what) ?? [];
      for (const [from, to] of receipt.ranges) ranges.push({ from, to, furthest: to, receipt });
      this.#byKind.set(receipt.what, ranges);
    }
    for (const ranges of this.#byKind.values()) {
      ranges.sort((a, b) => a.from - b.from);
      let furthest = 0;
      for (const range of ranges) {
        furthest = Math.max(furthest, range.to);
        range.furthest = furthest;
      }
    }
  }

  /** The receipt that needs no acceptance: the one of the first sealing, which every history has once. */
  get firstSealing(): KnownReceipt | undefined {
    return this.all.find(({ what }) => what === 'first sealing');
  }

  /** A later receipt of these kinds that names the position: nothing is excused in advance. */
  find(position: number, ...kinds: readonly string[]): KnownReceipt | undefined {
    for (const kind of kinds) {
      const ranges = this.#byKind.get(kind) ?? [];
      // Ranges of one kind may overlap: a document may be erased twice. So the search goes back from the last that
      // begins before.
      for (let place = lastBefore(ranges, position); place >= 0; place -= 1) {
        const range = ranges[place];
        if (range === undefined || range.furthest < position) break;
        if (range.to >= position && range.receipt.position > position) return range.receipt;
      }
    }
    return undefined;
  }
}

interface NamedRange {
  readonly from: number;
  readonly to: number;
  /** The greatest `to` of this range and those before it. */
  furthest: number;
  readonly receipt: KnownReceipt;
}

function lastBefore(ranges: readonly { readonly from: number }[], position: number): number {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ranges[middle]?.from ?? 0) <= position) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function isRange(value: unknown): value is readonly [number, number] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [from, to]: unknown[] = value;
  return isCount(from) && isCount(to) && from >= 1 && from <= to;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
