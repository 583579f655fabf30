import type { Annals, CostsOf } from '@annals/client';
import { sumDollars } from './sum-calls.ts';

export const seenBys = ['model', 'client', 'agent', 'user'] as const;
export type SeenBy = (typeof seenBys)[number];

/** Bars of the names that cost most, and one of all others. */
const colours = ['--accent', '--update-bar', '--create-bar', '--delete-bar', '--warning'] as const;
const colourOfOthers = '--ink-faint';

/** What the page of costs shows. */
export interface Seen {
  readonly by: SeenBy;
  /** The highest cost first. */
  readonly items: readonly CostsOf[];
  readonly total: Omit<CostsOf, 'name' | 'others'>;
  /** Milliseconds since 1970, in UTC. */
  readonly starts: readonly number[];
  readonly end: number;
  /** US dollars. `label`: a name; undefined for all others. */
  readonly series: readonly { label: string | undefined; colour: string; counts: readonly number[] }[];
}

const dayLength = 86_400_000;

/**
 * The costs of these days until today: of each name, and of the dearest ones and all others over time; a year by
 * months.
 */
export async function readCosts(
  usage: Annals['usage'],
  { by, days, signal }: { by: SeenBy; days: number; signal: AbortSignal },
): Promise<Seen> {
  const today = new Date().toISOString().slice(0, 10);
  const from = new Date(Date.parse(today) - (days - 1) * dayLength).toISOString().slice(0, 10);
  const range = { from, to: today };
  const over = days > 90 ? 'month' : 'day';
  const [items, whole] = await Promise.all([
    usage.costs({ ...range, by }, { signal }),
    usage.costs({ ...range, by: over }, { signal }),
  ]);
  const named = items.flatMap(({ name }) => (name === null ? [] : [name])).slice(0, colours.length);
  const parts = await Promise.all(
    named.map(async (name) => dollarsOf(await usage.costs({ ...range, by: over, [by]: name }, { signal }))),
  );
  const series = named.map((label, index) => ({
    label,
    colour: colours[index] ?? colourOfOthers,
    counts: parts[index] ?? [],
  }));
  const rest = dollarsOf(whole).map((sum, place) => parts.reduce((left, counts) => left - (counts[place] ?? 0), sum));
  // What is left of a difference of binary fractions is nothing.
  const others = rest.map((left) => (left < 1e-9 ? 0 : left));
  return {
    by,
    items,
    total: totalOf(whole),
    // Of months the first days, as the first bar begins.
    starts: whole.map(({ name }) => Math.max(Date.parse(name ?? ''), Date.parse(from))),
    end: Date.parse(today) + dayLength,
    series: [...series, { label: undefined, colour: colourOfOthers, counts: others }],
  };
}

function dollarsOf(items: readonly CostsOf[]): number[] {
  return items.map(({ costUsd }) => Number(costUsd));
}

function totalOf(items: readonly CostsOf[]): Seen['total'] {
  const sum = (of: (item: CostsOf) => number) => items.reduce((all, item) => all + of(item), 0);
  return {
    costUsd: sumDollars(items.map(({ costUsd }) => costUsd)),
    calls: sum(({ calls }) => calls),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    callsWithoutCost: sum(({ callsWithoutCost }) => callsWithoutCost),
  };
}
