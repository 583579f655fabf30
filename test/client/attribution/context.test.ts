import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Context,
  currentContext,
  express,
  runWithContext,
  setContext,
  withoutContext,
} from '@annals/client/context';
import { attribute } from '@annals/client/pg';
import fc from 'fast-check';
import pg from 'pg';
import { expect, test } from 'vitest';
import { shared } from '../../../clients/typescript/src/context/shared.ts';
import { wireText } from '../../../clients/typescript/src/context/wire-text.ts';
import { readTransactionInfo } from '../../../src/sources/transaction-info.ts';
import { trials } from '../../support/oracle/trials.ts';
import { poolOf, recorded, useShop } from './shop.ts';

const openShop = useShop();

type Result = Context | null | undefined | Promise<Context>;

/** Runs `handler` as a request behind the Express middleware. */
async function request<T>(
  resolve: (request: object) => Result,
  handler: () => T,
  options: object = {},
  headers = {},
): Promise<Awaited<T>> {
  const { promise, resolve: end, reject } = Promise.withResolvers<Awaited<T>>();
  const incoming = { headers, socket: { remoteAddress: '10.0.0.7' } };
  express(resolve, options)(incoming, {}, () => {
    Promise.try(handler).then(end as never, reject);
  });
  return await promise;
}

test('contexts nest, merge, and end with their function', async () => {
  expect(currentContext()).toBeUndefined();
  expect(setContext({ actor: 'x' })).toBe(false);
  await runWithContext({ actor: 'Ada', actorId: 1, onBehalfOf: { id: 'c' }, context: { ip: '::1' } }, async () => {
    expect(setContext({ context: { reason: 'r' } })).toBe(true);
    await sleep(1);
    expect(currentContext()).toEqual({
      actor: 'Ada',
      actorId: 1,
      onBehalfOf: { id: 'c' },
      context: { ip: '::1', reason: 'r' },
    });
    runWithContext({ correlationId: 'c' }, () => expect(currentContext()).toEqual({ correlationId: 'c' }));
    withoutContext(() => expect(currentContext()).toBeUndefined());
    // Another person never gets the id or the company of the first.
    setContext({ actor: 'Ben' });
    expect(currentContext()).toEqual({ actor: 'Ben', context: { ip: '::1', reason: 'r' } });
  });
  expect(currentContext()).toBeUndefined();
});

test('what is sent is ASCII that Annals reads as it was meant', () => {
  const name = fc.option(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter((text) => !text.includes('\0')),
    { nil: undefined },
  );
  const context = fc.record({
    actor: name,
    actorId: name,
    onBehalfOf: fc.record({ name, id: name }),
    correlationId: name,
    context: fc.option(
      fc.dictionary(
        fc.string({ minLength: 1 }).filter((key) => key !== '__proto__'),
        fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
        { maxKeys: 5 },
      ),
      { nil: undefined },
    ),
  });
  fc.assert(
    fc.property(context, (given) => {
      const text = wireText(given);
      if (text === undefined) return;
      expect(text).toMatch(/^[ -~]+$/);
      expect(readTransactionInfo(text)).toBeDefined();
      const plain = (value: unknown) => JSON.parse(JSON.stringify(value));
      const { onBehalfOf, ...rest } = plain(given);
      expect(JSON.parse(text)).toEqual({ ...rest, ...(Object.keys(onBehalfOf).length > 0 && { onBehalfOf }) });
    }),
    { seed: Number(process.env.ANNALS_SEED), numRuns: trials(300) },
  );
});

test('each limit is that of Annals, and a member beyond it is left out alone', () => {
  const nested = (levels: number): object => (levels === 1 ? {} : { a: nested(levels - 1) });
  const bytes = (count: number) => ({ a: 'x'.repeat(count - '{"a":""}'.length) });
  const escaped = (count: number) => ({ a: 'é'.repeat(count) });
  const limits: [Context, Context, string][] = [
    [{ actor: 'x'.repeat(1000) }, { actor: 'x'.repeat(1001) }, 'actor'],
    [{ actor: '😀'.repeat(1000) }, { actor: '😀'.repeat(1001) }, 'actor'],
    [{ actorId: 'x'.repeat(1000) }, { actorId: 'x'.repeat(1001) }, 'actorId'],
    [{ onBehalfOf: { name: 'x'.repeat(1000) } }, { onBehalfOf: { name: 'x'.repeat(1001) } }, 'onBehalfOf'],
    [{ onBehalfOf: { id: 'x'.repeat(1000) } }, { onBehalfOf: { id: 'x'.repeat(1001) } }, 'onBehalfOf'],
    [{ correlationId: 'x'.repeat(200) }, { correlationId: 'x'.repeat(201) }, 'correlationId'],
    [{ context: bytes(4096) as never }, { context: bytes(4097) as never }, 'context'],
    [{ context: escaped(681) as never }, { context: escaped(682) as never }, 'context'],
    [{ context: nested(4) as never }, { context: nested(5) as never }, 'context'],
    [{ actor: 'x' }, { actor: '' }, 'actor'],
    [{ actor: 'a\u0001' }, { actor: 'a\0' }, 'actor'],
    [{ actor: '\ud83d\ude00' }, { actor: '\ud83d' }, 'actor'],
    [{ context: { a: '\ud83d\ude00' } }, { context: { a: '\ude00' } }, 'context'],
  ];
  for (const [within, beyond, member] of limits) {
    const text = wireText({ correlationId: 'c', ...within }) ?? '';
    expect(text).toContain(`"${member}"`);
    expect(readTransactionInfo(text)).toBeDefined();
    const rest = member === 'correlationId' ? undefined : '{"correlationId":"c"}';
    expect(wireText({ correlationId: 'c', ...beyond }), JSON.stringify(beyond).slice(0, 80)).toBe(rest);
    // Annals would refuse the whole of it.
    if (!Object.hasOwn(beyond, 'context') || beyond.context?.a === undefined)
      expect(readTransactionInfo(JSON.stringify(beyond))).toBeUndefined();
  }
  const odd: unknown[] = [
    { actor: 7n, actorId: {} },
    { context: [] },
    { context: 'x' },
    { context: { a: 1n } },
    { correlationId: () => {} },
  ];
  for (const context of odd.slice(1)) expect(wireText(context as Context)).toBeUndefined();
  for (const inexact of [Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, -(2 ** 53)])
    expect(wireText({ actorId: inexact })).toBeUndefined();
  expect(wireText({ actorId: 2 ** 53 - 1 })).toBe('{"actorId":"9007199254740991"}');
  expect(wireText({ actorId: 17, onBehalfOf: { id: 18 } })).toBe('{"actorId":"17","onBehalfOf":{"id":"18"}}');
});

test('a request has an id of its own, and that of its caller only where it is trusted', async () => {
  const seen = async (sent: object, options: object = {}) => {
    const context = await request(() => null, currentContext, options, sent);
    return context?.correlationId;
  };
  const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
  const trace = '0af7651916cd43dd8448eb211c80319c';
  const headers = { 'x-request-id': 'r-1', traceparent: `00-${trace}-b7ad6b7169203331-01` };
  const trusted = { trustCorrelation: true };
  expect(await seen(headers)).toMatch(uuid);
  expect(await seen({}, trusted)).toMatch(uuid);
  expect(await seen(headers)).not.toBe(await seen(headers));
  expect(await seen(headers, trusted)).toBe(trace);
  expect(await seen({ ...headers, traceparent: 'x' }, trusted)).toBe('r-1');
  expect(await seen({ 'x-request-id': '!'.repeat(200) }, trusted)).toBe('!'.repeat(200));
  for (const id of ['', '!'.repeat(201), 'a b', 'é', 'a\u007f', ['a', 'b']])
    expect(await seen({ 'x-request-id': id }, trusted)).toMatch(uuid);
});

test('address and user agent are recorded only where asked for', async () => {
  const seen = async (options: object) =>
    (await request(() => null, currentContext, options, { 'user-agent': 'x'.repeat(600) }))?.context;
  expect(await seen({})).toBeUndefined();
  expect(await seen({ address: true })).toEqual({ ip: '10.0.0.7' });
  expect(await seen({ userAgent: true })).toEqual({ userAgent: 'x'.repeat(500) });
});

test('resolve is called once, outside of attribution, before the first connection is taken', async () => {
  const shop = await openShop();
  const pool = attribute(poolOf(pg, shop, { max: 1 }));
  const calls: unknown[] = [];
  const resolve = async () => {
    calls.push(currentContext());
    // With one connection, a write that held it and waited would never end.
    await pool.query('insert into items values (1)');
    return { actor: 'Ada' };
  };
  const correlationId = await request(resolve, async () => {
    await pool.query('insert into items values (2)');
    await pool.query('insert into items values (3)');
    return currentContext()?.correlationId;
  });
  expect(calls).toEqual([undefined]);
  const who = { actor: 'Ada', correlationId };
  expect(await recorded(shop)).toEqual([
    [1, null],
    [2, who],
    [3, who],
  ]);
});

test('a resolve that is late or fails costs its actor alone, with one warning', async () => {
  const shop = await openShop();
  const pool = attribute(poolOf(pg, shop));
  shared.warned.clear();
  const warnings: string[] = [];
  const keep = ({ message }: Error) => void warnings.push(message);
  process.on('warning', keep);
  let item = 0;
  const insert = async () => {
    const client = await pool.connect();
    await client.query('begin');
    item += 1;
    await client.query(`insert into items values (${item})`);
    await client.query('commit');
    item += 1;
    await client.query(`insert into items values (${item})`);
    client.release();
    return currentContext()?.correlationId;
  };
  const late = Promise.withResolvers<Context>();
  const failing = [
    () => late.promise,
    () => {
      throw new TypeError('secret');
    },
    () => Promise.reject(new TypeError('secret')),
  ];
  const ids: unknown[] = [];
  for (const resolve of [...failing, ...failing]) ids.push(await request(resolve, insert));
  process.off('warning', keep);
  expect(await recorded(shop)).toEqual(
    ids.flatMap((correlationId, index) => [
      [2 * index + 1, { correlationId }],
      [2 * index + 2, { correlationId }],
    ]),
  );
  const own = warnings.filter((text) => text.includes('resolve'));
  expect(own).toEqual([expect.stringContaining('more than 250 ms'), expect.stringContaining('failed (TypeError)')]);
  expect(own.join()).not.toContain('secret');
  // One that comes within the time is waited for; one that came too late counts from then on.
  const soon = await request(() => sleep(40).then(() => ({ actor: 'Ben' })), insert);
  const slow = Promise.withResolvers<Context>();
  const after = await request(
    () => slow.promise,
    async () => {
      await pool.query('insert into items values (101)');
      slow.resolve({ actor: 'Cleo' });
      await sleep(1);
      await pool.query('insert into items values (102)');
      return currentContext()?.correlationId;
    },
  );
  expect(await recorded(shop)).toEqual([
    [13, { actor: 'Ben', correlationId: soon }],
    [14, { actor: 'Ben', correlationId: soon }],
    [101, { correlationId: after }],
    [102, { actor: 'Cleo', correlationId: after }],
  ]);
});
