import * as fc from 'fast-check';
import { anyCharacter } from './any-character.ts';
import { arbitraryQuery } from './query-arbitrary.ts';
import type { QueryVocabulary } from './query-vocabulary.ts';

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
    { weight: 1, arbitrary: fc.string({ unit: anyCharacter, maxLength: 60 }) },
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
