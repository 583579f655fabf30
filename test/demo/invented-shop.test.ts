import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { inventShop } from '../../src/demo/prepared-shop.ts';
import type { DemoChange } from '../../src/demo/shop-file.ts';

const day = 86_400_000;
const noon = Date.parse('2026-03-04T12:00:00.000Z');
const nows = [noon, Date.parse('2026-05-31T00:00:00.001Z'), Date.parse('2027-12-25T23:59:59.999Z')];

const histories = new Map<number, readonly DemoChange[]>();

/** Made once for each moment. */
function history(now = noon): readonly DemoChange[] {
  const known = histories.get(now) ?? inventShop(now).changes;
  histories.set(now, known);
  return known;
}

function count<Key>(changes: readonly DemoChange[], key: (change: DemoChange) => Key): Map<Key, number> {
  const counts = new Map<Key, number>();
  for (const change of changes) counts.set(key(change), (counts.get(key(change)) ?? 0) + 1);
  return counts;
}

test('from Sunday to Saturday the history is the same and only continues further', () => {
  const sunday = Date.parse('2026-03-01T00:00:00.000Z');
  let early = history(sunday);
  for (let days = 1; days <= 6; days++) {
    const late = history(sunday + days * day);
    expect(late.length).toBeGreaterThan(early.length);
    expect(isDeepStrictEqual(late.slice(0, early.length), early)).toBe(true);
    early = late;
  }
  // The next one begins a week later.
  expect(history(sunday + 7 * day)[0]?.at).toBe((early[0]?.at ?? 0) + 7 * day);
});

test('a week later the same things have happened, a week later', () => {
  const shifted = history(noon + 7 * day);
  const essence = ({ op, entity, entityId, actor, at }: DemoChange) => [op, entity, entityId, actor, at];
  expect(shifted.map(essence)).toEqual(history().map((change) => essence({ ...change, at: change.at + 7 * day })));
});

test('about 5,000 changes, in order of time, within the last 90 days and none at or after now', () => {
  for (const now of nows) {
    const changes = history(now);
    expect(changes.length).toBeGreaterThan(4_500);
    expect(changes.length).toBeLessThan(5_500);
    let previous = now - 90 * day;
    for (const { at } of changes) {
      if (!Number.isInteger(at) || at <= previous) expect.fail(`${at} comes after ${previous}`);
      previous = at;
    }
    expect(previous).toBeLessThan(now);
  }
});

test('every entity type of the shop occurs, most changes being those of orders', () => {
  for (const now of nows) {
    const counts = count(history(now), ({ entity }) => entity);
    for (const entity of ['order', 'customer', 'product', 'segment', 'group-assignment', 'coupon', 'quote']) {
      expect(counts.get(entity), entity).toBeGreaterThan(100);
    }
    for (const entity of ['company', 'WARRANTY_CLAIM']) expect(counts.get(entity), entity).toBeGreaterThan(40);
    for (const entity of ['group', 'site']) expect(counts.get(entity), entity).toBeGreaterThanOrEqual(2);
    for (const entity of ['sign-in', 'export']) expect(counts.get(entity), entity).toBeGreaterThan(5);
    expect(counts.size).toBe(13);
    expect(counts.get('order')).toBeGreaterThan(2_000);
  }
});

test('every operation occurs, and some documents come back after they were deleted', () => {
  const changes = history();
  expect([...count(changes, ({ op }) => op).keys()].sort()).toEqual(['delete', 'insert', 'replace', 'update']);
  const inserts = count(
    changes.filter(({ op }) => op === 'insert'),
    ({ entity, entityId }) => `${entity} ${entityId}`,
  );
  expect([...inserts.values()].filter((times) => times > 1).length).toBeGreaterThan(3);
});

test('what a change has as before is the last state of its document, and an update changes something', () => {
  for (const now of nows) {
    const states = new Map<string, unknown>();
    for (const { op, entity, entityId, before, after } of history(now)) {
      const key = `${entity} ${entityId}`;
      expect(isDeepStrictEqual(before, states.get(key)), key).toBe(true);
      if (op === 'insert') expect(before).toBeUndefined();
      else expect(before).toBeDefined();
      expect(after === undefined).toBe(op === 'delete');
      expect(isDeepStrictEqual(before, after), key).toBe(false);
      states.set(key, structuredClone(after));
    }
  }
});

test('documents that refer to each other name what the shop had at that time', () => {
  const known = new Set<string>();
  for (const { entity, entityId, related } of history()) {
    known.add(`${entity} ${entityId}`);
    for (const item of related) expect(known.has(`${item.entity} ${item.entityId}`)).toBe(true);
  }
});

test('people have an id whatever their name, and two people never share one', () => {
  const namesOf = Map.groupBy(history(), ({ actorId }) => actorId);
  const namesById = new Map([...namesOf].map(([id, changes]) => [id, new Set(changes.map(({ actor }) => actor))]));
  expect([...(namesById.get('u-18') ?? [])]).toEqual(['Siobhán O’Hara', 'Siobhán Byrne']);
  namesById.delete('u-18');
  namesById.delete(undefined);
  for (const [id, names] of namesById) expect(names.size, id).toBe(1);
  expect(namesById.size).toBe(16);
});

test('support acts on behalf of customers, and changes of one request have the same correlation', () => {
  const onBehalf = history().filter(({ onBehalfOf }) => onBehalfOf !== undefined);
  expect(onBehalf.length).toBeGreaterThan(30);
  for (const { actorId, onBehalfOf, context } of onBehalf) {
    expect(['u-31', 'u-32']).toContain(actorId);
    expect(onBehalfOf).toEqual({ name: expect.any(String), id: expect.stringMatching(/^C\d+$/) });
    expect(context).toEqual({ ip: expect.stringMatching(/^198\.51\.100\./) });
  }
  const groups = Map.groupBy(history(), ({ correlationId }) => correlationId);
  groups.delete(undefined);
  expect(groups.size).toBeGreaterThan(100);
  for (const [id, changes] of groups) {
    expect(id).toMatch(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(changes.length).toBeGreaterThan(1);
    expect(new Set(changes.map(({ actor }) => actor)).size).toBe(1);
  }
});

test('a sign-in comes before the first change of its person on that day', () => {
  const signIns = history().filter(({ entity }) => entity === 'sign-in');
  for (const { at, actorId, op, after, context } of signIns) {
    expect([op, after]).toEqual(['insert', {}]);
    expect(context).toEqual({ ip: expect.any(String) });
    const sameDay = history().filter(
      (change) => change.actorId === actorId && Math.floor(change.at / day) === Math.floor(at / day),
    );
    expect(sameDay[0]?.at).toBe(at);
  }
});
