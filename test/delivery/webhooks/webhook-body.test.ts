import { expect, test } from 'vitest';
import {
  attemptSteps,
  maxProbePause,
  pauseAfter,
  probePause,
  slowPause,
} from '../../../src/delivery/webhooks/retry-schedule.ts';
import { hiddenReach, maxBodyBytes, webhookBody, withHidden } from '../../../src/delivery/webhooks/webhook-body.ts';
import { webhookIdOf } from '../../../src/delivery/webhooks/webhook-target.ts';

const item = (paths: string) =>
  `{"at":"2026-11-23T09:30:00.000Z","type":"update","entity":"p","entityId":"1","paths":${paths},"actor":"J","related":[],"ref":"R"}`;
const change = (paths: string) => ({ type: 'update', at: 1_795_426_200_000, ref: 'R', text: item(paths) });
const acme = { tenant: 'acme', hide: [] };

test('a body has the item as it is, with every digit', async () => {
  const paths = '{"price":{"before":1.10,"after":12345678901234567890.120}}';
  expect(await webhookBody(change(paths), acme)).toBe(
    `{"type":"change.update","timestamp":"2026-11-23T09:30:00.000Z","data":${item(paths)}}`,
  );
});

test('values of hidden paths are masked on both sides, and no others', () => {
  const paths = '{"card.number":{"before":1,"after":2},"cards":{"after":1.10},"a+b":{"after":null}}';
  expect(withHidden(item(paths), ['card.*', 'a+b'])).toBe(
    item('{"card.number":{"before":"********","after":"********"},"cards":{"after":1.10},"a+b":{"after":"********"}}'),
  );
  expect(withHidden(item(paths), ['ard.*', 'card', 'CARD.*'])).toBe(item(paths));
});

test('values of hidden paths are masked inside of whole values too, and the rest keeps every digit', () => {
  const paths =
    '{"lines":{"before":null,"after":[{"price":1.10,"sku":"a"},{"sku":1.0},[{"price":2}]]},"b":{"after":{"c.d":{"e":1},"f":[]}}}';
  const masked = '"lines":{"before":null,"after":[{"price":"********","sku":"a"},{"sku":1.0},[{"price":"********"}]]}';
  for (const [hide, b] of [
    [['lines.price', 'b.c\\.d'], '{"c.d":"********","f":[]}'],
    [['lines.*.price', 'b.c.d'], '{"c.d":{"e":1},"f":[]}'],
    [['*price', 'b.*.e'], '{"c.d":{"e":"********"},"f":[]}'],
    [['l*s.p*e', 'c.d', 'b.c.d', 'e'], '{"c.d":{"e":1},"f":[]}'],
  ] as const)
    expect(withHidden(item(paths), hide)).toBe(item(`{${masked},"b":{"after":${b}}}`));
});

test('what is too deep in a value, or has too long a path there, counts as hidden', () => {
  const nested = (levels: number, inside: string) => `${'['.repeat(levels)}${inside}${']'.repeat(levels)}`;
  const hide = ['card'];
  const deep = (levels: number, inside = '1') => item(`{"a":{"after":${nested(levels, inside)}}}`);
  expect(withHidden(deep(hiddenReach.levels), hide)).toBe(deep(hiddenReach.levels));
  expect(withHidden(deep(9_900), hide)).toBe(deep(hiddenReach.levels + 1, '"********"'));
  const long = (characters: number, inside = '1') => item(`{"a":{"after":{"${'k'.repeat(characters)}":${inside}}}}`);
  const longest = hiddenReach.path - 'a.'.length;
  expect(withHidden(long(longest), hide)).toBe(long(longest));
  expect(withHidden(long(longest + 1), hide)).toBe(long(longest + 1, '"********"'));
});

test('however many stars a pattern has, it is compared in time linear in the path', () => {
  const paths = (last: string) => `{"${'a'.repeat(5_000)}${last}":{"after":1}}`;
  // With backtracking this would take years.
  expect(withHidden(item(paths('c')), [`${'*a'.repeat(60)}*b`])).toBe(item(paths('c')));
  expect(withHidden(item(paths('b')), [`${'*a'.repeat(60)}*b`])).toContain('********');
});

test('a body of 256 KiB goes out whole; one byte more, and its values are left out, with the address of the entry', async () => {
  const empty = Buffer.byteLength(await webhookBody(change('{"t":{"after":""}}'), acme));
  const whole = await webhookBody(change(`{"t":{"after":"${'x'.repeat(maxBodyBytes - empty)}"}}`), acme);
  expect(Buffer.byteLength(whole)).toBe(maxBodyBytes);
  expect(JSON.parse(whole).data).not.toHaveProperty('truncated');
  const cut = await webhookBody(change(`{"t":{"after":"${'x'.repeat(maxBodyBytes - empty + 1)}"}}`), acme);
  expect(JSON.parse(cut).data).toMatchObject({
    paths: { t: {} },
    truncated: true,
    entry: '/changelog/acme/entries?ref=R',
  });
  const names = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, n) => [`path.${n}`.padEnd(30, '-'), { after: n }]),
  );
  const bare = await webhookBody(change(JSON.stringify(names)), acme);
  expect(Buffer.byteLength(bare)).toBeLessThan(maxBodyBytes);
  expect(JSON.parse(bare).data).toMatchObject({ entityId: '1', paths: {}, truncated: true });
});

test('the id of a webhook is made of tenant, time and identity alone', () => {
  const firstChange = { at: 1, identity: '00'.repeat(16) };
  expect(webhookIdOf('acme', firstChange)).toMatch(/^chg_[\w-]{32}$/);
  const ids = [firstChange, { ...firstChange, at: 2 }, { ...firstChange, identity: '01'.repeat(16) }].map((of) =>
    webhookIdOf('acme', of),
  );
  expect(new Set([...ids, webhookIdOf('globex', firstChange)]).size).toBe(4);
  expect(webhookIdOf('acme', firstChange)).toBe(ids[0]);
});

test('ten more attempts after the first, each step a fifth shorter or longer at most, and Retry-After up to twice the step', () => {
  const [low, high] = [() => 0, () => 0.999999];
  for (const [index, step] of attemptSteps.entries()) {
    expect(pauseAfter(index + 1, { random: low })).toBeCloseTo(step * 0.8, 0);
    expect(pauseAfter(index + 1, { random: high })).toBeLessThanOrEqual(step * 1.2);
    expect(pauseAfter(index + 1, { random: low, retryAfter: 1.5 * step })).toBe(1.5 * step);
    expect(pauseAfter(index + 1, { random: high, retryAfter: 365 * 86_400_000 })).toBe(2 * step);
    expect(pauseAfter(index + 1, { random: low, retryAfter: 1 })).toBeCloseTo(step * 0.8, 0);
  }
  expect(attemptSteps.map((step) => step / 1_000)).toEqual([
    5, 60, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400,
  ]);
  expect(pauseAfter(attemptSteps.length + 1)).toBeUndefined();
});

test('probes and slow targets get growing pauses up to a maximum', () => {
  const middle = () => 0.5;
  expect([1, 2, 3].map((times) => Math.round(probePause(times, middle)))).toEqual([5_000, 10_000, 20_000]);
  expect(Math.round(probePause(100, middle))).toBe(maxProbePause);
  expect([1, 2, 3, 100].map((times) => Math.round(slowPause(times, 0, middle)))).toEqual([1_000, 2_000, 4_000, 60_000]);
  expect(slowPause(1, 365 * 86_400_000, middle)).toBe(2_000);
});
