import * as fc from 'fast-check';
import type { Change } from '../../../src/recording/change.ts';
import { arbitraryPaths, hardPaths } from './path-arbitrary.ts';
import { hardExpressions, hardNames } from './query-arbitrary.ts';
import type { QueryVocabulary } from './query-vocabulary.ts';

const minute = 60_000;
const day = 86_400_000;

export interface HistorySketch {
  vocabulary: QueryVocabulary;
  /** Recorded one batch after the other; after some of them the deltas are folded. */
  batches: { tenant: string; changes: Omit<Change, 'identity'>[]; fold: boolean }[];
}

/**
 * Random histories of a few tenants around a moment: crowded milliseconds and minutes, entries far apart, on the
 * edges of the default window, of hours and of days, few names and many. `who`: changes may say who exactly made them,
 * for whom, what they belong to and in which context.
 */
export function arbitraryHistory(
  tenants: readonly string[],
  now: number,
  { who = false } = {},
): fc.Arbitrary<HistorySketch> {
  const names = fc.uniqueArray(fc.constantFrom(...hardNames), { minLength: 1, maxLength: 12 });
  return fc
    .record({
      entities: names,
      entityIds: names,
      actors: names,
      moments: fc.array(arbitraryTime(now), { minLength: 1, maxLength: 8 }),
    })
    .chain(({ entities, entityIds, actors, moments }) => {
      const people = arbitraryWho(actors);
      const plain = arbitraryChange({ entities, entityIds, actors, moments });
      const change = who ? fc.tuple(plain, people).map(([one, of]) => ({ ...one, ...of })) : plain;
      const batch = fc.record({
        tenant: fc.constantFrom(...tenants),
        changes: fc.oneof(
          { weight: 3, arbitrary: fc.array(change, { maxLength: 30 }) },
          { weight: 1, arbitrary: fc.array(change, { minLength: 80, maxLength: 200 }) },
        ),
        fold: fc.boolean(),
      });
      return fc.record({
        vocabulary: fc.constant({
          entities,
          entityIds,
          actors,
          paths: hardPaths,
          expressions: hardExpressions,
          times: moments.map(writable),
          ...(who && { who: { names: [...actors, 'exists', 'missing'], correlations, values: contextValues } }),
        }),
        batches: fc.array(batch, { minLength: 1, maxLength: 5 }),
      });
    });
}

const correlations = [
  '0190c9a4-7d5e-7c3a-9b1f-3f2a1c0d9e8f',
  '0190C9A4-7D5E-7C3A-9B1F-3F2A1C0D9E8F',
  'exists',
  'a b',
  'é',
];
const contextValues = ['10.0.0.1', '10.0.0.2', '1.10', '1e400', '-0', 'true', 'exists', '\u0001', '"', '\\', 'é', ''];
/** Members of contexts, as JSON texts. */
const contextMembers = [
  '"10.0.0.1"',
  '"10.0.0.2"',
  '1.10',
  '1e400',
  '-0',
  'true',
  'null',
  '{"ip":"10.0.0.1"}',
  '["10.0.0.1"]',
];
const hardMembers = [
  '"\\u0001"',
  '"\\u0000"',
  '"\\ud800"',
  '"\\""',
  '"\\\\"',
  '"é"',
  '"\\u00e9"',
  '""',
  `"${'x'.repeat(201)}"`,
];
export const contextNames = ['ip', 'user-agent', 'a.b', 'say "hi"', 'back\\slash', ''];

function arbitraryWho(names: readonly string[]): fc.Arbitrary<Partial<Change>> {
  const name = fc.constantFrom(...names);
  const person = fc.oneof(fc.record({ name }), fc.record({ id: name }), fc.record({ name, id: name }));
  const context = fc
    .dictionary(fc.constantFrom(...contextNames), fc.constantFrom(...contextMembers, ...hardMembers), { maxKeys: 3 })
    .map(
      (members) =>
        `{${Object.entries(members)
          .map(([key, value]) => `${JSON.stringify(key)}:${value}`)
          .join(',')}}`,
    );
  const correlationId = fc.constantFrom(...correlations);
  return fc.record({ actorId: name, onBehalfOf: person, correlationId, context }, { requiredKeys: [] });
}

/** A time from 1971 on: one whose writing with an offset does not leave the years that RFC 3339 knows. */
function writable(time: number): number {
  return Math.max(time, 365 * day);
}

function arbitraryTime(now: number): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: now - 3 * day, max: now }) },
    { weight: 2, arbitrary: fc.integer({ min: now - 40 * day, max: now + day }) },
    { weight: 2, arbitrary: fc.integer({ min: now - 30 * day - 3, max: now - 30 * day + 3 }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 60 }).map((days) => Math.floor(now / day) * day - days * day) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: now }) },
    { weight: 1, arbitrary: fc.constantFrom(0, Date.UTC(2101, 0) - 1) },
  );
}

function arbitraryChange(values: {
  entities: readonly string[];
  entityIds: readonly string[];
  actors: readonly string[];
  moments: readonly number[];
}): fc.Arbitrary<Omit<Change, 'identity'>> {
  const moment = fc.constantFrom(...values.moments);
  // The minute before a moment holds many, the millisecond itself some.
  const at = fc.oneof(
    { weight: 2, arbitrary: moment },
    {
      weight: 3,
      arbitrary: fc
        .tuple(moment, fc.integer({ max: 0, min: -2 * minute }))
        .map(([one, shift]) => Math.max(0, one + shift)),
    },
  );
  const entity = fc.constantFrom(...values.entities);
  const entityId = fc.constantFrom(...values.entityIds);
  return fc.record(
    {
      at,
      type: fc.constantFrom('create' as const, 'update' as const, 'delete' as const),
      entity,
      entityId,
      name: fc.constantFrom(...hardNames),
      schemaVersion: fc.constantFrom('1', '2.0', '"'),
      actor: fc.constantFrom(...values.actors),
      related: fc.array(fc.record({ entity, entityId }), { maxLength: 3 }),
      paths: arbitraryPaths(),
    },
    { requiredKeys: ['at', 'type', 'entity', 'entityId', 'actor', 'related', 'paths'] },
  );
}
