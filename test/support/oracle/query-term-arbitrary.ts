import * as fc from 'fast-check';
import {
  type BoundSketch,
  canBeBare,
  canBeUnquoted,
  type PlainSketch,
  type TermSketch,
  type ValueSketch,
} from './query-sketch.ts';
import type { QueryVocabulary } from './query-vocabulary.ts';

/** Mostly as few blanks as the grammar allows. */
export function arbitraryBlanks(least: number): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.constant(least) },
    { weight: 1, arbitrary: fc.integer({ min: least, max: 3 }) },
  );
}

export function arbitraryItem(vocabulary: QueryVocabulary): fc.Arbitrary<TermSketch> {
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

export function arbitraryPath(vocabulary: QueryVocabulary): fc.Arbitrary<TermSketch> {
  return arbitraryMatch('path', vocabulary.paths, vocabulary).map((term) => ({ ...term, beneath: true }) as TermSketch);
}

export function arbitraryChange(vocabulary: QueryVocabulary): fc.Arbitrary<TermSketch> {
  const side = fc.constantFrom('before', 'after').chain((field) =>
    fc.oneof(
      {
        weight: 4,
        arbitrary: arbitraryTerm(
          field,
          fc.oneof(arbitraryPlain(sideValues, false), arbitraryList(arbitraryPlain(sideValues, true))),
        ),
      },
      { weight: 2, arbitrary: arbitraryComparison(field) },
    ),
  );
  const is = fc
    .constantFrom('lower', 'higher')
    .map((text): PlainSketch => ({ form: 'bare', parts: [text], escapeAll: false }));
  const term = fc.oneof(
    { weight: 3, arbitrary: arbitraryMatch('path', vocabulary.paths, vocabulary) },
    { weight: 4, arbitrary: side },
    { weight: 1, arbitrary: arbitraryTerm('is', is) },
  );
  const sequence = fc.record({
    terms: fc.array(term, { minLength: 1, maxLength: 3 }),
    before: arbitraryBlanks(0),
    after: arbitraryBlanks(0),
  });
  return fc.record({
    kind: fc.constant('item' as const),
    field: fc.constant('change'),
    sequence,
    blanks: arbitraryBlanks(1),
  });
}

function arbitraryComparison(field: string): fc.Arbitrary<TermSketch> {
  const bound = fc.record({
    operator: fc.constantFrom('>' as const, '>=' as const, '<' as const, '<=' as const),
    value: fc.oneof(
      fc.constantFrom('1', '1.10', '9007199254740992', '-3', '1e2').map((text) => ({ type: 'number' as const, text })),
      fc.constantFrom('OPEN', 'P', '', 'é').map((text) => ({ type: 'string' as const, text })),
    ),
  });
  return fc.record({
    kind: fc.constant('comparison' as const),
    field: fc.constant(field),
    bounds: fc.array(
      bound.map(({ operator, value }) => ({ operator, ...value })),
      { minLength: 1, maxLength: 2 },
    ),
    blanks: arbitraryBlanks(1),
  });
}

/** A term on what an entry may lack: who exactly, what it belongs to, its context. */
export function arbitraryWho(
  vocabulary: QueryVocabulary,
  who: NonNullable<QueryVocabulary['who']>,
): fc.Arbitrary<TermSketch> {
  const correlation = arbitraryPlain(who.correlations, true).map(
    (plain): PlainSketch =>
      plain.form === 'bare' && plain.parts.length > 1 ? { form: 'quoted', text: plain.parts.join('') } : plain,
  );
  const fields = ['actorId', 'onBehalfOf', 'onBehalfOfId'].map((field) => arbitraryMatch(field, who.names, vocabulary));
  const members = ['ip', 'user-agent', 'a.b', 'say "hi"', 'back\\slash', ''].map((name) =>
    arbitraryMatch(
      /^[a-z.]+$/.test(name) ? `context.${name}` : `context."${name.replaceAll(/["\\]/g, '\\$&')}"`,
      who.values,
      vocabulary,
    ),
  );
  return fc.oneof(...fields, arbitraryTerm('correlationId', arbitraryList(correlation)), ...members);
}

export function arbitraryType(): fc.Arbitrary<TermSketch> {
  const plainType = fc
    .tuple(fc.constantFrom('create', 'update', 'delete'), fc.boolean(), fc.boolean())
    .map(
      ([text, quoted, escapeAll]): PlainSketch =>
        quoted ? { form: 'quoted', text } : { form: 'bare', parts: [text], escapeAll },
    );
  return arbitraryTerm(
    'type',
    fc.oneof({ weight: 3, arbitrary: plainType }, { weight: 1, arbitrary: arbitraryList(plainType) }),
  );
}

export function arbitraryMatch(
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

/** Values of paths, and words that have a meaning instead of them. */
const sideValues = [
  'OPEN',
  'PAID',
  'exists',
  'missing',
  'null',
  'true',
  'false',
  '1',
  '1.1',
  '9007199254740993',
  '********',
  'é',
  '-3.0',
  '100',
];

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

export function arbitraryTime({ times }: QueryVocabulary): fc.Arbitrary<TermSketch> {
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
