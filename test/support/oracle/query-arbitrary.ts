import * as fc from 'fast-check';
import type { Query } from '../../../src/query/ast.ts';
import { type GroupSketch, type SequenceSketch, type TermSketch, writeQuery } from './query-sketch.ts';
import {
  arbitraryBlanks,
  arbitraryChange,
  arbitraryItem,
  arbitraryMatch,
  arbitraryPath,
  arbitraryTime,
  arbitraryType,
  arbitraryWho,
} from './query-term-arbitrary.ts';
import type { QueryVocabulary } from './query-vocabulary.ts';

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
    { weight: 2, arbitrary: arbitraryPath(vocabulary) },
    { weight: 2, arbitrary: arbitraryChange(vocabulary) },
    ...(vocabulary.who === undefined ? [] : [{ weight: 6, arbitrary: arbitraryWho(vocabulary, vocabulary.who) }]),
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
