import type { Condition, Match } from '../../../query/ast.ts';
import { textOfProjection } from '../../../query/json-projection.ts';
import { requiredText } from '../../../query/plain-regex.ts';
import { QueryError } from '../../../query/query-error.ts';
import type { RegexBudget, RegexMatcherPool } from '../../../query/regex-pool.ts';
import { uuidOf } from '../../../recording/entry-columns.ts';
import type { IdSet } from './expression.ts';

/** Which texts: the ids of the changed documents, those of related documents, or the changed paths. */
export type IdsOf = 'document' | 'related' | 'path';

/** A regular expression that Annals matches against ids, and its first position in the query. */
export interface IdPattern {
  readonly of: IdsOf;
  readonly source: string;
  readonly position: number;
}

/** Maximum number of ids that a query's expressions are matched against: their hashes take about 80 MB. */
export const maxIds = 2_000_000;

/** The regular expressions of a query that are matched against ids, and not only names; each expression once. */
export function patternsOnIds(query: Condition): IdPattern[] {
  const patterns = new Map<string, IdPattern>();
  const add = (of: IdsOf, { matcher, position }: Match) => {
    if (matcher.kind !== 'regex') return;
    patterns.getOrInsert(nameOf(of, matcher.source), { of, source: matcher.source, position });
  };
  const visit = (condition: Condition) => {
    if (condition.kind === 'and' || condition.kind === 'or') condition.operands.forEach(visit);
    else if (condition.kind === 'item') {
      const matches = condition.operand.operands.filter((term) => term.kind === 'match');
      for (const term of matches.filter(({ field }) => field === 'entityId')) add('related', term);
      for (const term of matches.filter(({ field }) => field === 'path')) add('path', term);
    } else if (condition.kind === 'match') {
      if (condition.field === 'entityId') add('document', condition);
      if (condition.field === 'related.entityId') add('related', condition);
      if (condition.field === 'path') add('path', condition);
    }
  };
  visit(query);
  return [...patterns.values()];
}

/** The matches of each pattern. */
export class IdMatches {
  readonly #found = new Map<string, IdSet>();

  get(of: IdsOf, source: string): IdSet {
    const found = this.#found.get(nameOf(of, source));
    if (found === undefined) throw new Error('an expression was not tried on ids');
    return found;
  }

  set({ of, source }: IdPattern, found: IdSet): void {
    this.#found.set(nameOf(of, source), found);
  }
}

/** Treats every pattern as if it matched every id. */
export function everyId(patterns: readonly IdPattern[]): IdMatches {
  const found = new IdMatches();
  for (const pattern of patterns) found.set(pattern, { kind: 'ids', isIn: false, count: 0, hashes: '{}' });
  return found;
}

/**
 * Matches patterns against ids while it reads them, in batches that limit memory and let other requests run. Rejects with
 * QueryError if the patterns exceed the budget.
 */
export async function tryOnIds(
  patterns: readonly IdPattern[],
  read: (of: IdsOf, containing: readonly string[] | null) => AsyncIterable<readonly string[]>,
  { regexes, budget }: { regexes: RegexMatcherPool; budget: RegexBudget },
): Promise<IdMatches> {
  const found = new IdMatches();
  for (const whose of ['document', 'related', 'path'] as const) {
    const tried = patterns.filter(({ of }) => of === whose);
    const [first] = tried;
    if (first === undefined) continue;
    const sides = tried.map(() => ({ matching: new Hashes(), others: new Hashes() }));
    let count = 0;
    // Annals need not read ids without such a text: the pattern does not match them.
    const required = tried.map(({ source }) => requiredText(source));
    const containing = required.includes('') ? null : required;
    for await (const batch of read(whose, containing)) {
      count += batch.length;
      if (count > maxIds) throw new QueryError(first.position, tooManyIds);
      const texts = whose === 'path' ? batch.map(textOfProjection) : batch;
      for (const [place, { source, position }] of tried.entries()) {
        const members = await regexes.matchNames(source, texts, { position, budget });
        sides[place]?.matching.add(batch.filter((_id, index) => members[index] === 1));
        if (containing === null) sides[place]?.others.add(batch.filter((_id, index) => members[index] !== 1));
      }
    }
    for (const [place, { matching, others }] of sides.entries()) {
      const pattern = tried[place];
      if (pattern !== undefined) found.set(pattern, toldBy(matching, containing === null ? others : undefined));
    }
  }
  return found;
}

const tooManyIds = `a regular expression that is tried on no more than ${maxIds.toLocaleString('en')} ids; narrow the query's time or its entity`;

/** Lists the ids that match or the ids that do not match, whichever are fewer. The second needs a read of all ids. */
function toldBy(matching: Hashes, others: Hashes | undefined): IdSet {
  const isIn = others === undefined || matching.count <= others.count;
  const told = isIn ? matching : others;
  return { kind: 'ids', isIn, count: told.count, hashes: told.text() };
}

/** Hashes as the text of an array, made piece by piece: the driver would write a long array in one step. */
class Hashes {
  readonly #parts: string[] = [];
  count = 0;

  add(ids: readonly string[]): void {
    if (ids.length === 0) return;
    this.#parts.push(ids.map(uuidOf).join(','));
    this.count += ids.length;
  }

  text(): string {
    return `{${this.#parts.join(',')}}`;
  }
}

function nameOf(of: IdsOf, source: string): string {
  return `${of} ${source}`;
}
