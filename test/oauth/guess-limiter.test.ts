import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createBoundedCache } from '../../src/oauth/bounded-cache.ts';
import { createGuessLimiter } from '../../src/oauth/guess-limiter.ts';
import { startTestServer, type TestServer } from '../support/server/server.ts';

const victim = `acme.${'0'.repeat(20)}`;
const other = `acme.${'1'.repeat(20)}`;

describe('guessing is slowed down', () => {
  let elapsed = 0;
  const wrong = { clientId: victim, clientSecret: 'wrong', address: '192.0.2.1' };

  test('ten failures for a client from an address are free, then one in 5 seconds', () => {
    const limiter = createGuessLimiter(() => elapsed);
    for (let failure = 0; failure < 10; failure += 1) {
      expect(limiter.secondsToWait(wrong)).toBe(0);
      limiter.failed(wrong);
    }
    expect(limiter.secondsToWait(wrong)).toBe(5);
    elapsed += 4_999;
    expect(limiter.secondsToWait(wrong)).toBe(1);
    elapsed += 1;
    expect(limiter.secondsToWait(wrong)).toBe(0);
    limiter.failed(wrong);
    expect(limiter.secondsToWait(wrong)).toBe(5);
    elapsed += 50_000;
    expect(limiter.secondsToWait(wrong)).toBe(0);
  });

  test('nobody locks out a client from another address, or another client at the same one', () => {
    const limiter = createGuessLimiter(() => elapsed);
    for (let failure = 0; failure < 50; failure += 1) limiter.failed(wrong);
    expect(limiter.secondsToWait(wrong)).toBeGreaterThan(0);
    expect(limiter.secondsToWait({ ...wrong, address: '192.0.2.2' })).toBe(0);
    expect(limiter.secondsToWait({ ...wrong, clientId: other })).toBe(0);
  });

  test('an address that tries many clients has to wait as well', () => {
    const limiter = createGuessLimiter(() => elapsed);
    for (let failure = 0; failure < 100; failure += 1) {
      expect(limiter.secondsToWait({ ...wrong, clientId: `id ${failure}` })).toBe(0);
      limiter.failed({ ...wrong, clientId: `id ${failure}` });
    }
    expect(limiter.secondsToWait({ ...wrong, clientId: 'id' })).toBe(1);
  });

  test('a client that got a token before never waits; a wrong secret for it still does', () => {
    const limiter = createGuessLimiter(() => elapsed);
    const right = { ...wrong, clientSecret: 'right' };
    limiter.succeeded(right);
    for (let failure = 0; failure < 50; failure += 1) limiter.failed(wrong);
    expect(limiter.secondsToWait(right)).toBe(0);
    expect(limiter.secondsToWait(wrong)).toBeGreaterThan(0);
  });

  test('addresses of one IPv6 network count as one', () => {
    const limiter = createGuessLimiter(() => elapsed);
    for (let failure = 0; failure < 10; failure += 1) {
      limiter.failed({ ...wrong, address: `2001:db8::${failure.toString(16)}:1` });
    }
    expect(limiter.secondsToWait({ ...wrong, address: '2001:db8:0:0:ffff::' })).toBe(5);
    expect(limiter.secondsToWait({ ...wrong, address: '2001:db8:0:1::' })).toBe(0);
    expect(limiter.secondsToWait({ ...wrong, address: '::ffff:192.0.2.1' })).toBe(0);
  });
});

test('a bounded cache keeps what was used last and never more than its limit', () => {
  const cache = createBoundedCache<number>(100);
  const kept = () =>
    Array.from({ length: 10_000 }, (_, key) => cache.get(`${key}`)).filter((value) => value !== undefined);
  for (let key = 0; key < 10_000; key += 1) {
    cache.set(`${key}`, key);
    expect(cache.get('0')).toBe(0);
  }
  const values = kept();
  expect(values.length).toBeLessThanOrEqual(100);
  expect(values).toContain(9_999);
  expect(values).toContain(0);
});

describe('over HTTP', () => {
  let server: TestServer;
  beforeAll(async () => {
    // No time passes between the guesses, however busy the machine is.
    server = await startTestServer({ clock: { elapsed: () => 0 } });
  });
  afterAll(() => server.close());

  test('too many wrong secrets are 429 with Retry-After; the right one, known here, still gets a token', async () => {
    const client = await server.createClient('acme');
    const fresh = await server.createClient('acme');
    await server.tokenOf(client);
    const guess = (secret: string) =>
      server.call('/oauth/token', {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: client.clientId,
          client_secret: secret,
        }),
      });
    for (let attempt = 0; attempt < 10; attempt += 1) expect((await guess(`wrong ${attempt}`)).status).toBe(401);
    const limited = await guess('wrong again');
    expect(limited.status).toBe(429);
    expect(limited.headers.get('retry-after')).toBe('5');
    expect(await limited.json()).toEqual({
      status: 429,
      type: 'rate_limit_exceeded',
      message: 'Too many failed attempts to authenticate.',
    });
    expect(await server.tokenOf(client)).toMatch(/^ey/);
    expect(await server.tokenOf(fresh)).toMatch(/^ey/);
  });

  test('behind a proxy of the own network, the address is the one it forwards', async () => {
    const client = await server.createClient('acme');
    const guessFrom = async (address: string, secret: string) => {
      const response = await server.call('/oauth/token', {
        method: 'POST',
        headers: { 'x-forwarded-for': address },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: client.clientId,
          client_secret: secret,
        }),
      });
      return response.status;
    };
    for (let attempt = 0; attempt < 10; attempt += 1) await guessFrom('198.51.100.1', 'wrong');
    expect(await guessFrom('198.51.100.1', client.clientSecret)).toBe(429);
    expect(await guessFrom('198.51.100.2', client.clientSecret)).toBe(200);
  });
});
