import { TimeSlice } from '../../../core/fairness/time-slice.ts';
import type { Glob, List, Match } from '../../../query/ast.ts';
import { compileMatcher, likePattern } from '../../../query/match.ts';
import type { RegexBudget, RegexMatcherPool } from '../../../query/regex-pool.ts';
import { nameOfPath } from '../../../recording/path-names.ts';
import { hasPlace, type PathName, type PathNames } from '../names/path-name-store.ts';
import type { PathCandidates, PathMatcher } from './expression.ts';

/** Whether an entry with this name has an accepted path; undefined: that depends on the path. */
type Decide = (name: string) => boolean | undefined;

/** The entries that may have a path that satisfies all the terms. */
export async function pathCandidates(
  terms: readonly Match[],
  { names, rest }: PathNames,
  resolver: { regexes: RegexMatcherPool; budget: RegexBudget },
): Promise<PathCandidates> {
  const decisions: Decide[] = [];
  for (const term of terms) decisions.push(await decisionOf(term, names, resolver));
  const certain = new Set<number>();
  // Where a path has no number, or names share one, the entry itself decides.
  const possible = new Set<number>(rest === undefined ? [] : [rest]);
  const slice = new TimeSlice();
  for (const [index, { number, name, isShared }] of names.entries()) {
    if (index % 16 === 0 && slice.isDue) await slice.rest();
    const verdict = allOf(decisions.map((decide) => decide(name)));
    if (verdict === false) continue;
    const isCertain = verdict === true && !isShared && number !== rest;
    (isCertain ? certain : possible).add(number);
  }
  // The texts of many terms take as long as their match.
  if (slice.isDue) await slice.rest();
  return { certain: listsOfNumbers([...certain]), possible: listsOfNumbers([...possible]) };
}

/** The index tries each number of a list on each entry, so short lists are faster; the planner pays for each list. */
const maxLists = 64;

export function listsOfNumbers(numbers: readonly number[]): string[] {
  const size = Math.max(1, Math.ceil(numbers.length / maxLists));
  return Array.from(
    { length: Math.ceil(numbers.length / size) },
    (_none, place) => `{${numbers.slice(place * size, (place + 1) * size).join(',')}}`,
  );
}

/** Patterns of LIKE for the names that a term may accept; null means any. */
export function patternsOfNames(terms: readonly Match[]): string[] | null {
  const patterns = terms.map(({ matcher, beneath }) => {
    if (matcher.kind === 'regex') return undefined;
    const items = matcher.kind === 'list' ? matcher.items : [matcher];
    return items.flatMap((item) => [
      ...patternsOfItem(item, beneath),
      ...(item.kind === 'glob' && mayMeanPlaces(item) ? ['%*%'] : []),
    ]);
  });
  return patterns.every((ofTerm) => ofTerm !== undefined) ? withoutNul(patterns.flat()) : null;
}

/** Patterns of LIKE that decide by the name alone. Undefined where the paths themselves decide. */
export function decidingPatterns({ matcher, beneath }: PathMatcher): string[] | undefined {
  if (matcher.kind === 'found' || matcher.kind === 'ids') return undefined;
  const items = matcher.kind === 'list' ? matcher.items : [matcher];
  return items.some(mayMeanPlaces) ? undefined : withoutNul(items.flatMap((item) => patternsOfItem(item, beneath)));
}

function patternsOfItem(item: List['items'][number], beneath: boolean | undefined): string[] {
  if (item.kind === 'glob') return [likePattern(item)];
  const name = likePattern({ parts: [nameOfPath(item.text)] });
  return beneath ? [name, `${name}.%`] : [name];
}

/** No name has U+0000, and the database has no text for it. */
function withoutNul(patterns: readonly string[]): string[] {
  return patterns.filter((pattern) => !pattern.includes('\0'));
}

function allOf(verdicts: readonly (boolean | undefined)[]): boolean | undefined {
  if (verdicts.includes(false)) return false;
  return verdicts.includes(undefined) ? undefined : true;
}

async function decisionOf(
  { matcher, beneath, position }: Match,
  names: readonly PathName[],
  { regexes, budget }: { regexes: RegexMatcherPool; budget: RegexBudget },
): Promise<Decide> {
  if (matcher.kind === 'regex') {
    // With a place in it, a name stands for many paths.
    const whole = [...new Set(names.map(({ name }) => name))].filter((name) => !hasPlace(name));
    const members = await regexes.matchNames(matcher.source, whole, { position, budget });
    const matched = new Set(whole.filter((_name, index) => members[index] === 1));
    return (name) => (hasPlace(name) ? undefined : matched.has(name));
  }
  const items = matcher.kind === 'list' ? matcher.items : [matcher];
  const decisions = items.map((item) => (item.kind === 'text' ? ofText(item.text, beneath) : ofGlob(item)));
  return (name) => {
    const verdicts = decisions.map((decide) => decide(name));
    if (verdicts.includes(true)) return true;
    return verdicts.includes(undefined) ? undefined : false;
  };
}

function ofText(text: string, beneath: boolean | undefined): Decide {
  const named = nameOfPath(text);
  const holds = (name: string) => name === named || (beneath === true && name.startsWith(`${named}.`));
  // A text without places means the same in a name as in the paths that the name stands for.
  if (!hasPlace(named)) return holds;
  return (name) => (holds(name) ? undefined : false);
}

function ofGlob(glob: Glob): Decide {
  const holds = compileMatcher(glob);
  if (!mayMeanPlaces(glob)) return holds;
  return (name) => (hasPlace(name) ? undefined : holds(name));
}

/** Whether a path and its name may differ where a glob or a text looks. */
function mayMeanPlaces(item: List['items'][number]): boolean {
  return item.kind === 'glob' ? item.parts.some((part) => /[0-9*]/.test(part)) : hasPlace(nameOfPath(item.text));
}
