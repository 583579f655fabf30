import * as fc from 'fast-check';
import type { Query } from '../../src/query/ast.ts';
import {
  type BoundSketch,
  canBeBare,
  canBeUnquoted,
  type GroupSketch,
  type PlainSketch,
  type SequenceSketch,
  type TermSketch,
  type ValueSketch,
  writeQuery,
} from './query-sketch.ts';

export interface QueryVocabulary {
  readonly entities: readonly string[];
  readonly entityIds: readonly string[];
  readonly actors: readonly string[];
  /** Regular expressions, valid by themselves. */
  readonly expressions: readonly string[];
  /** Times that bounds are near, in milliseconds since 1970. */
  readonly times: readonly number[];
}

/** Names that are hard on a parser and on LIKE, with beginnings in common. */
export const hardNames: readonly string[] = [
  'Jane Doe',
  'Jane',
  'Jane Do',
  'Jane Doe ',
  ' Jane',
  'jane doe',
  'JANE',
  'Jan',
  'Ja*e',
  '*',
  '**',
  'a*b*c',
  'Doe, Jane',
  'Jane (Sales)',
  'Jane (Sales',
  'Jane) Sales',
  '(Jane)',
  ')(',
  'Jane: CEO',
  'type: x',
  'type:update',
  'a type:x',
  'a  type:x',
  'say "hi"',
  '"quoted"',
  'back\\slash',
  'back\\\\slash',
  'end\\',
  '\\',
  '\\*',
  '~tilde',
  '<b>',
  '>=',
  '100%',
  '10_0',
  '%',
  '_',
  'AND',
  'Jane AND John',
  'ORlando',
  'x OR',
  'NOT',
  'US-OR-1',
  '*OR*',
  '😀',
  '😀 Jane',
  'Ja😀ne',
  'é',
  'e\u0301',
  'Straße',
  'STRASSE',
  '\t',
  'a\tb',
  'line\nbreak',
  'null',
  'true',
  '1',
  '1.0',
  'a'.repeat(40),
  `${'a'.repeat(39)}b`,
  'ab'.repeat(20),
  "O'Brien",
  "'; drop table x; --",
  '$1',
  '{a,b}',
  '[x]',
  'elemMatch(entity:x)',
  'system',
  'external',
  'unknown',
];

export const hardExpressions: readonly string[] = [
  'Jane',
  '^Jane',
  'Doe$',
  '^J(an|oh)',
  '(a|b)+',
  '[()]',
  '[]()]',
  '[^])(]',
  '[[:alpha:](]+',
  '\\(',
  '\\)',
  '\\Q(\\E',
  '\\Qa)b(\\E.*',
  'a{2,3}',
  '(?i)JANE',
  '(?s).',
  '.*',
  '^$',
  'x*',
  '\\d+',
  '\\pL+',
  '\\p{Greek}|é',
  '"',
  'say "',
  '\\\\',
  '\\.',
  ' Doe',
  'a b',
  'a  b',
  'AND',
  ' OR ',
  'type:',
  'a type:x',
  '[ type:]',
  '😀',
  '(?P<name>J)',
  '\\bDoe\\b',
  '(a+)+$',
  '[a-c]{0,20}$',
  '\\x{4A}',
  '[\\]()]',
  '\\*',
  ',',
  '~',
];

/** Random queries of the change history that are right, each with the tree that the parser should make of it. */
export function arbitraryQuery(vocabulary: QueryVocabulary): fc.Arbitrary<{ text: string; query: Query }> {
  return fc
    .oneof(arbitraryRoot(vocabulary, true), arbitraryRoot(vocabulary, false))
    .map(writeQuery)
    .filter(({ text }) => [...text].length <= 4096);
}

/** Texts that look like queries: right ones with a few edits, and tokens of the grammar in any order. */
export function arbitraryMutatedText(vocabulary: QueryVocabulary): fc.Arbitrary<string> {
  const token = fc.constantFrom(...grammarTokens, ...vocabulary.actors, ...vocabulary.expressions);
  const edit = fc.record({ at: fc.nat(), remove: fc.nat({ max: 3 }), insert: fc.oneof(fc.constant(''), token) });
  const mutated = fc
    .tuple(arbitraryQuery(vocabulary), fc.array(edit, { minLength: 1, maxLength: 4 }))
    .map(([{ text }, edits]) => edits.reduce(applyEdit, text));
  return fc.oneof(
    { weight: 6, arbitrary: mutated },
    { weight: 3, arbitrary: fc.array(token, { maxLength: 30 }).map((tokens) => tokens.join('')) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 60 }) },
  );
}

const grammarTokens = [
  ' ',
  '  ',
  ':',
  '(',
  ')',
  '((',
  '))',
  ',',
  '"',
  '\\',
  '*',
  '~',
  '>',
  '>=',
  '<',
  '<=',
  '~"',
  '\\"',
  '\\\\',
  'AND',
  ' AND ',
  ' OR ',
  ' NOT ',
  'entity:',
  'entityId:',
  'type:',
  'type:create',
  'actor:',
  'occurredAt:',
  'occurredAt:>"',
  '"2026-08-31T12:00:00.000Z"',
  'related:',
  'related:elemMatch(',
  'related.entity:',
  'related.entityId:',
  'compoundLogicalQuery:',
  'compoundLogicalQuery:((',
  ') OR (',
  ') AND (',
  'status:',
  'x:',
  '.',
  '_',
  '\u0000',
  '\ud800',
  '\udc00',
  '😀',
  '\t',
  '[',
  ']',
  '{',
  '}',
  '{1000}',
  '(?i)',
  '(?=',
  '\\1',
  '\\Q',
  '\\E',
  '[^]',
  '[[:',
  '|',
  '+',
  '?',
  '^',
  '$',
  '\\pL',
];

function applyEdit(text: string, edit: { at: number; remove: number; insert: string }): string {
  const at = edit.at % (text.length + 1);
  return text.slice(0, at) + edit.insert + text.slice(at + edit.remove);
}

function arbitraryRoot(vocabulary: QueryVocabulary, entityAbove: boolean): fc.Arbitrary<SequenceSketch> {
  const root = arbitrarySequence(vocabulary, { entityAbove, depth: 3, maxLength: 4 });
  if (!entityAbove) return root;
  return fc
    .tuple(root, fc.nat(), arbitraryMatch('entity', vocabulary.entities, vocabulary))
    .map(([sketch, at, entity]) => {
      const terms = [...sketch.terms];
      terms.splice(at % (terms.length + 1), 0, entity);
      return { ...sketch, terms };
    });
}

interface Shape {
  entityAbove: boolean;
  depth: number;
  maxLength: number;
}

/** An `entityId` comes with an `entity` beside it unless there is one above. */
function arbitrarySequence(vocabulary: QueryVocabulary, shape: Shape): fc.Arbitrary<SequenceSketch> {
  const { entities, entityIds, actors } = vocabulary;
  const entity = arbitraryMatch('entity', entities, vocabulary);
  const entityId = arbitraryMatch('entityId', entityIds, vocabulary);
  const pair = fc
    .tuple(entity, entityId, fc.boolean())
    .map(([one, other, swap]) => (swap ? [other, one] : [one, other]));
  const single = fc.oneof(
    { weight: 2, arbitrary: entity },
    { weight: 3, arbitrary: arbitraryMatch('actor', actors, vocabulary) },
    { weight: 2, arbitrary: arbitraryType() },
    { weight: 2, arbitrary: arbitraryTime(vocabulary) },
    { weight: 1, arbitrary: arbitraryMatch('related.entity', entities, vocabulary) },
    { weight: 1, arbitrary: arbitraryMatch('related.entityId', entityIds, vocabulary) },
    { weight: 2, arbitrary: arbitraryItem(vocabulary) },
    ...(shape.depth === 0 ? [] : [{ weight: 4, arbitrary: arbitraryCompound(vocabulary, shape) }]),
  );
  const chunk = fc.oneof(
    { weight: 6, arbitrary: single.map((term) => [term]) },
    { weight: 1, arbitrary: shape.entityAbove ? entityId.map((term) => [term]) : pair },
  );
  return fc.record({
    terms: fc.array(chunk, { maxLength: shape.maxLength }).map((chunks) => chunks.flat()),
    before: arbitraryBlanks(0),
    after: arbitraryBlanks(0),
  });
}

function arbitraryBlanks(least: number): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.constant(least) },
    { weight: 1, arbitrary: fc.integer({ min: least, max: 3 }) },
  );
}

function arbitraryCompound(vocabulary: QueryVocabulary, shape: Shape): fc.Arbitrary<TermSketch> {
  return fc.record({
    kind: fc.constant('group' as const),
    group: arbitraryGroup(vocabulary, { ...shape, depth: shape.depth - 1, maxLength: 2 }),
    blanks: arbitraryBlanks(1),
  });
}

function arbitraryGroup(vocabulary: QueryVocabulary, shape: Shape): fc.Arbitrary<GroupSketch> {
  const sequence = arbitrarySequence(vocabulary, shape);
  const operand =
    shape.depth === 0
      ? sequence
      : fc.oneof(
          { weight: 4, arbitrary: sequence },
          { weight: 1, arbitrary: arbitraryGroup(vocabulary, { ...shape, depth: shape.depth - 1 }) },
        );
  return fc.record({
    operator: fc.constantFrom('AND' as const, 'OR' as const, 'OR' as const),
    operands: fc.array(operand, { minLength: 1, maxLength: 3 }),
    blanks: arbitraryBlanks(1),
  });
}

function arbitraryItem(vocabulary: QueryVocabulary): fc.Arbitrary<TermSketch> {
  const term = fc.oneof(
    arbitraryMatch('entity', vocabulary.entities, vocabulary),
    arbitraryMatch('entityId', vocabulary.entityIds, vocabulary),
  );
  const sequence = fc.record({
    terms: fc.array(term, { minLength: 1, maxLength: 2 }),
    before: arbitraryBlanks(0),
    after: arbitraryBlanks(0),
  });
  return fc.record({ kind: fc.constant('item' as const), sequence, blanks: arbitraryBlanks(1) });
}

function arbitraryType(): fc.Arbitrary<TermSketch> {
  const one = fc
    .tuple(fc.constantFrom('create', 'update', 'delete'), fc.boolean(), fc.boolean())
    .map(
      ([text, quoted, escapeAll]): PlainSketch =>
        quoted ? { form: 'quoted', text } : { form: 'bare', parts: [text], escapeAll },
    );
  return arbitraryTerm('type', fc.oneof({ weight: 3, arbitrary: one }, { weight: 1, arbitrary: arbitraryList(one) }));
}

function arbitraryMatch(
  field: string,
  names: readonly string[],
  vocabulary: QueryVocabulary,
): fc.Arbitrary<TermSketch> {
  return arbitraryTerm(
    field,
    fc.oneof(
      { weight: 6, arbitrary: arbitraryPlain(names, false) },
      { weight: 2, arbitrary: arbitraryList(arbitraryPlain(names, true)) },
      { weight: 2, arbitrary: arbitraryRegex(vocabulary) },
    ),
  );
}

function arbitraryTerm(field: string, value: fc.Arbitrary<ValueSketch>): fc.Arbitrary<TermSketch> {
  return fc.record({
    kind: fc.constant('match' as const),
    field: fc.constant(field),
    value,
    blanks: arbitraryBlanks(1),
  });
}

function arbitraryList(item: fc.Arbitrary<PlainSketch>): fc.Arbitrary<ValueSketch> {
  return fc.record({
    form: fc.constant('list' as const),
    items: fc.array(item, { minLength: 1, maxLength: 4 }),
    blanks: fc.nat({ max: 2 }),
  });
}

/** A name as it is, or with stars in place of some of it; quoted where it cannot be bare. */
function arbitraryPlain(names: readonly string[], inList: boolean): fc.Arbitrary<PlainSketch> {
  return fc
    .record({
      name: fc.constantFrom(...names),
      cuts: fc.oneof(fc.constant([]), fc.array(fc.tuple(fc.nat(), fc.nat({ max: 6 })), { minLength: 1, maxLength: 3 })),
      escapeAll: fc.boolean(),
      quoted: fc.boolean(),
    })
    .map(({ name, cuts, escapeAll, quoted }): PlainSketch => {
      const parts = cutOut(name, cuts);
      if (!canBeBare(parts, escapeAll, inList)) return { form: 'quoted', text: name };
      return quoted && parts.length === 1 ? { form: 'quoted', text: name } : { form: 'bare', parts, escapeAll };
    });
}

function cutOut(name: string, cuts: readonly (readonly [number, number])[]): string[] {
  let parts = [name];
  for (const [at, length] of cuts) {
    const last = [...(parts.at(-1) ?? '')];
    const start = at % (last.length + 1);
    parts = [...parts.slice(0, -1), last.slice(0, start).join(''), last.slice(start + length).join('')];
  }
  return parts;
}

function arbitraryRegex({ expressions }: QueryVocabulary): fc.Arbitrary<ValueSketch> {
  return fc
    .record({ source: fc.constantFrom(...expressions), quoted: fc.boolean(), escapeAll: fc.boolean() })
    .map(({ source, quoted, escapeAll }) => ({
      form: 'regex',
      source,
      quoted: quoted || !canBeUnquoted(source),
      escapeAll,
    }));
}

function arbitraryTime({ times }: QueryVocabulary): fc.Arbitrary<TermSketch> {
  const bounds = fc.oneof(fc.tuple(arbitraryBound(times)), fc.tuple(arbitraryBound(times), arbitraryBound(times)));
  return fc.record({ kind: fc.constant('time' as const), bounds, blanks: arbitraryBlanks(1) });
}

function arbitraryBound(times: readonly number[]): fc.Arbitrary<BoundSketch> {
  return fc
    .record({
      operator: fc.constantFrom('>' as const, '>=' as const, '<' as const, '<=' as const),
      time: fc.constantFrom(...times),
      shift: fc.oneof(
        fc.constant(0n),
        fc.bigInt({ min: -2_000_000n, max: 2_000_000n }),
        fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n }),
      ),
      digits: fc.nat({ max: 9 }),
      offset: fc.oneof(fc.constant(undefined), fc.integer({ min: -1439, max: 1439 })),
    })
    .map(({ operator, time, shift, digits, offset }) => {
      const precise = BigInt(time) * 1_000_000n + shift;
      return { operator, nanoseconds: precise - (precise % 10n ** BigInt(9 - digits)), digits, offset };
    });
}
