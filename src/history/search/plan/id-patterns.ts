import { uuidOf } from '../../../core/text-hash.ts';
import type { Condition, Match } from '../../../query/ast.ts';
import { textOfProjection } from '../../../query/json-projection.ts';
import { requiredText } from '../../../query/plain-regex.ts';
import { QueryError } from '../../../query/query-error.ts';
import type { RegexBudget, RegexMatcherPool } from '../../../query/regex-pool.ts';
import type { IdSet } from './expression.ts';

/** The ids of the changed documents, those of related documents, the changed paths, or a member of the context. */
export type IdField = 'document' | 'related' | 'path' | `context.${string}`;

/** A regular expression that is matched against ids, and its first position in the query. */
interface IdPattern {
  readonly of: IdField;
  readonly source: string;
  readonly position: number;
}

/** Maximum number of ids that a query's expressions are matched against: their hashes take about 80 MB. */
export const maxIds = 2_000_000;

/** The regular expressions of a query that are matched against ids, and not only names; each expression once. */
export function patternsOnIds(query: Condition): IdPattern[] {
  const patterns = new Map<string, IdPattern>();
  const add = (of: IdField, { matcher, position }: Match) => {
    if (matcher.kind !== 'regex') return;
    patterns.getOrInsert(keyOf(of, matcher.source), { of, source: matcher.source, position });
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
      if (isContextField(condition.field)) add(condition.field, condition);
    }
  };
  visit(query);
  return [...patterns.values()];
}

/** Whether a field of `q` is a member of the context. */
export function isContextField(field: string): field is `context.${string}` {
  return field.startsWith('context.');
}

export class IdMatches {
  readonly #sets = new Map<string, IdSet>();

  get(of: IdField, source: string): IdSet {
    const set = this.#sets.get(keyOf(of, source));
    if (set === undefined) throw new Error('an expression was not tried on ids');
    return set;
  }

  set({ of, source }: IdPattern, set: IdSet): void {
    this.#sets.set(keyOf(of, source), set);
  }
}

/** Treats every pattern as if it matched every id. */
export function everyId(patterns: readonly IdPattern[]): IdMatches {
  const matches = new IdMatches();
  for (const pattern of patterns) matches.set(pattern, { kind: 'ids', isIn: false, count: 0, hashes: '{}' });
  return matches;
}

/**
 * Matches patterns against ids while it reads them, in batches that limit memory and let other requests run. Rejects
 * with QueryError if the patterns exceed the budget.
 */
export async function tryOnIds(
  patterns: readonly IdPattern[],
  read: (of: IdField, containing: readonly string[] | null) => AsyncIterable<readonly string[]>,
  { regexes, budget }: { regexes: RegexMatcherPool; budget: RegexBudget },
): Promise<IdMatches> {
  const matches = new IdMatches();
  for (const field of new Set(patterns.map(({ of }) => of))) {
    const ofField = patterns.filter(({ of }) => of === field);
    if (ofField.length === 0) continue;
    // Ids without such a text need not be read: the pattern does not match them.
    const required = ofField.map(({ source }) => requiredText(source));
    const containing = required.includes('') ? null : required;
    const tried = ofField.map((pattern) => ({ pattern, matching: new Hashes(), rest: new Hashes() }));
    let count = 0;
    for await (const batch of read(field, containing)) {
      count += batch.length;
      if (count > maxIds) throw new QueryError(ofField[0]?.position ?? 1, tooManyIds);
      const texts = field === 'path' || isContextField(field) ? batch.map(textOfProjection) : batch;
      for (const { pattern, matching, rest } of tried) {
        const { source, position } = pattern;
        const members = await regexes.matchNames(source, texts, { position, budget });
        matching.add(batch.filter((_id, index) => members[index] === 1));
        if (containing === null) rest.add(batch.filter((_id, index) => members[index] !== 1));
      }
    }
    for (const { pattern, matching, rest } of tried) {
      // Lists whichever are fewer: the ids that match, or the rest. The rest is only known after a read of all ids.
      const isIn = containing !== null || matching.count <= rest.count;
      const listed = isIn ? matching : rest;
      matches.set(pattern, { kind: 'ids', isIn, count: listed.count, hashes: listed.text() });
    }
  }
  return matches;
}

const tooManyIds = `a regular expression that is tried on no more than ${maxIds.toLocaleString('en')} ids; narrow the query's time or its entity`;

/** Hashes as the text of an array, built piece by piece: the driver would write a long array in one step. */
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

function keyOf(of: IdField, source: string): string {
  return `${of} ${source}`;
}
