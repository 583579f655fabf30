import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonNumber } from '../../clients/typescript/src/json/index.ts';
import {
  actor,
  actorId,
  and,
  anyValue,
  changed,
  changeType,
  context,
  correlationId,
  elemMatch,
  entity,
  entityId,
  field,
  glob,
  noValue,
  occurredAt,
  onBehalfOf,
  onBehalfOfId,
  or,
  path,
  type Query,
  regex,
  relatedEntity,
  relatedEntityId,
  value,
} from '../../clients/typescript/src/query/index.ts';
import { changelogDialect } from '../../src/history/search/plan/dialect.ts';
import type { Matcher } from '../../src/query/ast.ts';
import { compileMatcher } from '../../src/query/match.ts';
import { parseDocumentQuery, parseQuery } from '../../src/query/parse.ts';
import { compileRegex } from '../../src/query/regex.ts';
import { hardNames } from '../support/oracle/query-arbitrary.ts';
import { seed } from '../support/oracle/random.ts';
import { trials } from '../support/oracle/trials.ts';

/** Any text that the language can hold: no NUL, no half of a surrogate pair. */
const name = fc.oneof(
  fc.constantFrom(...hardNames),
  fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => text.replaceAll('\0', '0')),
  fc
    .array(
      fc.constantFrom('"', '\\', '*', '(', ')', ',', ' ', '~', '<', ':', 'type:', 'AND', 'OR ', ' NOT', '.', '$', 'a'),
      { maxLength: 8 },
    )
    .map((parts) => parts.join('')),
);
const names = fc.array(name, { minLength: 1, maxLength: 3 });

/** The parsed query without positions. */
function parsed(query: Query): unknown {
  return withoutPositions(parseQuery(String(query), changelogDialect));
}

function withoutPositions(node: unknown): unknown {
  return JSON.parse(JSON.stringify(node, (key, part) => (key === 'position' ? undefined : part)));
}

function texts(values: readonly string[]): object {
  const items = values.map((text) => ({ kind: 'text', text, quoted: true }));
  return items.length === 1 ? (items[0] ?? {}) : { kind: 'list', items };
}

const match = (fieldName: string, matcher: object) => ({ kind: 'match', field: fieldName, matcher });
const all = (...operands: object[]) => ({ kind: 'and', operands });

test('whatever the names, the service reads exactly the terms that were meant', async () => {
  await fc.assert(
    fc.property(names, names, name, name, (entities, ids, person, group) => {
      const query = and(
        entity(...entities),
        entityId(...ids),
        or(actor(person), and(changeType('create', 'delete'), elemMatch({ entity: group, entityId: person }))),
        relatedEntity(group),
        relatedEntityId(...ids),
      );
      expect(parsed(query)).toEqual(
        all(
          match('entity', texts(entities)),
          match('entityId', texts(ids)),
          {
            kind: 'or',
            operands: [
              all(match('actor', texts([person]))),
              all(match('type', texts(['create', 'delete'])), {
                kind: 'item',
                field: 'related',
                operand: all(match('entity', texts([group])), match('entityId', texts([person]))),
              }),
            ],
          },
          match('related.entity', texts([group])),
          match('related.entityId', texts(ids)),
        ),
      );
    }),
    { numRuns: trials(150), seed },
  );
});

test('whatever the names, who and from where are read as they were meant', async () => {
  await fc.assert(
    fc.property(names, name, name, (ids, member, text) => {
      const query = and(
        actorId(...ids),
        or(onBehalfOf(text), onBehalfOfId(anyValue)),
        correlationId(text),
        context(member, ...ids),
        context(member, noValue),
      );
      expect(parsed(query)).toEqual(
        all(
          match('actorId', texts(ids)),
          {
            kind: 'or',
            operands: [
              all(match('onBehalfOf', texts([text]))),
              all(match('onBehalfOfId', { kind: 'text', text: 'exists', quoted: false })),
            ],
          },
          match('correlationId', texts([text])),
          match(`context.${member}`, texts(ids)),
          match(`context.${member}`, { kind: 'text', text: 'missing', quoted: false }),
        ),
      );
    }),
    { numRuns: trials(150), seed },
  );
  const untyped = actorId as (...values: unknown[]) => unknown;
  expect(() => untyped(anyValue, 'u-17')).toThrow(TypeError);
});

test('whatever a pattern holds, it matches what its stars say, alone, in a list and under elemMatch', async () => {
  const parts = fc.array(name, { minLength: 1, maxLength: 3 });
  let bare = 0;
  await fc.assert(
    fc.property(parts, names, name, (literals, others, filling) => {
      const pattern = glob(literals.map((text) => text.replace(/[*\\]/g, '\\$&')).join('*'));
      const hit = literals.join(filling);
      const expression = new RegExp(
        `^${literals.map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('[^]*')}$`,
      );
      for (const query of [actor(pattern), or(actor(pattern), changeType('update')), elemMatch({ entity: pattern })]) {
        const { matches, kind } = matcherOf(query);
        if (kind === 'glob') bare += 1;
        expect(matches(hit)).toBe(true);
        for (const text of others) expect(matches(text), `${query}`).toBe(expression.test(text));
      }
      const list = matcherOf(actor(pattern, ...others)).matches;
      for (const text of [hit, ...others]) expect(list(text)).toBe(true);
      expect(list('a name that nobody has')).toBe(expression.test('a name that nobody has'));
    }),
    { numRuns: trials(150), seed },
  );
  // Both forms were tried: a bare one that the service can answer from its index, and an expression for the rest.
  expect(bare).toBeGreaterThan(trials(20));
  expect(bare).toBeLessThan(trials(430));
});

/** The first matcher of a query, as the service carries it out. */
function matcherOf(query: Query): { kind: Matcher['kind']; matches: (text: string) => boolean } {
  const found: Matcher[] = [];
  JSON.stringify(parseQuery(String(query), changelogDialect), (key, part) => {
    if (key === 'matcher') found.push(part);
    return part;
  });
  const [matcher] = found;
  if (matcher === undefined) throw new Error('no term has a matcher');
  return {
    kind: matcher.kind,
    matches: matcher.kind === 'regex' ? compileRegex(matcher.source) : compileMatcher(matcher),
  };
}

test('whatever the paths and values, the service reads exactly the change that was meant', async () => {
  const number = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e300, max: 1e300 });
  const jsonValue = fc.oneof(
    name,
    number,
    fc.boolean(),
    fc.constant(null),
    fc.bigInt(),
    fc.constant(new JsonNumber('1.10')),
  );
  await fc.assert(
    fc.property(
      names,
      names,
      fc.array(jsonValue, { minLength: 1, maxLength: 3 }),
      name,
      (paths, exact, values, bound) => {
        const query = and(
          path(...paths),
          changed({ path: exact, before: values, after: value.between(bound, 12n), is: 'lower' }),
        );
        const written = values.map((each) =>
          typeof each === 'string'
            ? { kind: 'text', text: each, quoted: true }
            : { kind: 'text', text: each instanceof JsonNumber ? each.text : String(each), quoted: false },
        );
        const bounds = [
          { operator: '>=', type: 'string', text: bound },
          { operator: '<', type: 'number', text: '12' },
        ];
        expect(parsed(query)).toEqual(
          all(
            { ...match('path', texts(paths)), beneath: true },
            {
              kind: 'item',
              field: 'change',
              operand: all(
                match('path', texts(exact)),
                match('before', written.length === 1 ? (written[0] ?? {}) : { kind: 'list', items: written }),
                { kind: 'comparison', field: 'after', bounds },
                match('is', { kind: 'text', text: 'lower', quoted: false }),
              ),
            },
          ),
        );
      },
    ),
    { numRuns: trials(150), seed },
  );
});

test('a path beside patterns still finds what is beneath it, and a change takes patterns and conditions', () => {
  const text = (of: string) => ({ kind: 'text', text: of, quoted: true });
  const beneath = (matcher: object) => ({ ...match('path', matcher), beneath: true });
  expect(parsed(path('price', regex('^a')))).toEqual(
    all({ kind: 'or', operands: [all(beneath(text('price'))), all(beneath({ kind: 'regex', source: '^a' }))] }),
  );
  const change = (...operands: object[]) => all({ kind: 'item', field: 'change', operand: all(...operands) });
  const pattern = { kind: 'glob', parts: ['items.', '.price'] };
  expect(parsed(changed({ path: glob('items.*.price'), after: glob('P*') }))).toEqual(
    change(match('path', pattern), match('after', { kind: 'glob', parts: ['P', ''] })),
  );
  expect(parsed(changed({ path: regex('^a'), before: value.exists(), after: value.missing() }))).toEqual(
    change(
      match('path', { kind: 'regex', source: '^a' }),
      match('before', { kind: 'text', text: 'exists', quoted: false }),
      match('after', { kind: 'text', text: 'missing', quoted: false }),
    ),
  );
  expect(parsed(changed({ after: 'exists', is: 'higher' }))).toEqual(
    change(match('after', text('exists')), match('is', { kind: 'text', text: 'higher', quoted: false })),
  );
  for (const wrong of [
    () => path(),
    () => changed({}),
    () => changed({ path: [] }),
    () => changed({ after: [] }),
    () => changed({ after: Number.POSITIVE_INFINITY }),
    () => changed({ after: glob('a AND *') }),
  ]) {
    expect(wrong).toThrow(TypeError);
  }
});

test('a regular expression arrives as it was written', () => {
  for (const source of ['^J(an|oh)', 'a "b" \\\\ \\" \\d+ [(]', 'type: x AND (y)']) {
    expect(parsed(actor(regex(source)))).toEqual(all(match('actor', { kind: 'regex', source })));
  }
  expect(parsed(actor(regex(/^jane\/x/is)))).toEqual(all(match('actor', { kind: 'regex', source: '(?is)^jane\\/x' })));
});

test('times are ranges, and what is no time is refused before it is sent', () => {
  const [from, to] = [Date.UTC(2026, 0, 1), Date.UTC(2026, 1, 1)];
  const range = (bounds: object) => all({ kind: 'time', field: 'occurredAt', ...bounds });
  expect(parsed(occurredAt.from(new Date(from)))).toEqual(range({ from, hasFromBound: true }));
  expect(parsed(occurredAt.after(new Date(from)))).toEqual(range({ from: from + 1, hasFromBound: true }));
  expect(parsed(occurredAt.before('2026-02-01T00:00:00Z'))).toEqual(range({ to, hasFromBound: false }));
  expect(parsed(occurredAt.until('2026-02-01T01:00:00+01:00'))).toEqual(range({ to: to + 1, hasFromBound: false }));
  expect(parsed(occurredAt.between(new Date(from), new Date(to)))).toEqual(range({ from, to, hasFromBound: true }));
  for (const text of ['2026-01-01', 'yesterday', '2026-01-01T00:00:00Z" OR "']) {
    expect(() => occurredAt.from(text)).toThrow(TypeError);
  }
});

test('and() without queries filters nothing, or() and a term without values are refused', () => {
  expect(parsed(and())).toEqual(all());
  expect(String(or(actor('a')))).toBe('actor:"a"');
  expect(parsed(and(and(entity('a'), actor('b')), and()))).toEqual(
    all(match('entity', texts(['a'])), match('actor', texts(['b']))),
  );
  for (const build of [() => or(), () => entity(), () => elemMatch({}), () => field('a').is()])
    expect(build).toThrow(TypeError);
});

test('fields of documents: values keep their type, whatever the strings', async () => {
  const parsedDocument = (query: Query) => withoutPositions(parseDocumentQuery(String(query)));
  const bare = (text: string) => ({ kind: 'text', text, quoted: false });
  await fc.assert(
    fc.property(
      names,
      name,
      fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e300, max: 1e300 }),
      (values, bound, number) => {
        const query = and(
          field('tags').is(...values),
          or(field('a.b').between(bound, 'z'), field('n').atLeast(number)),
        );
        expect(parsedDocument(query)).toEqual(
          all(match('tags', texts(values)), {
            kind: 'or',
            operands: [
              all({
                kind: 'comparison',
                field: 'a.b',
                bounds: [
                  { operator: '>=', type: 'string', text: bound },
                  { operator: '<', type: 'string', text: 'z' },
                ],
              }),
              all({
                kind: 'comparison',
                field: 'n',
                bounds: [{ operator: '>=', type: 'number', text: String(number) }],
              }),
            ],
          }),
        );
      },
    ),
    { numRuns: trials(150), seed },
  );
  expect(parsedDocument(field('a').is(1, 'x', true, 12n, new JsonNumber('1.10')))).toEqual(
    all(
      match('a', {
        kind: 'list',
        items: [bare('1'), { kind: 'text', text: 'x', quoted: true }, bare('true'), bare('12'), bare('1.10')],
      }),
    ),
  );
  expect(parsedDocument(and(field('a').isNull(), field('b').exists(), field('c').missing()))).toEqual(
    all(match('a', bare('null')), match('b', bare('exists')), match('c', bare('missing'))),
  );
  for (const [query, operator] of [
    [field('a').above(1), '>'],
    [field('a').below(1), '<'],
    [field('a').atMost(1), '<='],
  ] as const) {
    expect(parsedDocument(query)).toEqual(
      all({ kind: 'comparison', field: 'a', bounds: [{ operator, type: 'number', text: '1' }] }),
    );
  }
  for (const wrong of ['', 'a b', '0', 'a:b', 'é', 'compoundLogicalQuery'])
    expect(() => field(wrong)).toThrow(TypeError);
  expect(() => field('a').is(Number.NaN)).toThrow(TypeError);
  expect(() => field('a').is(1, glob('a*'))).toThrow(TypeError);
});
