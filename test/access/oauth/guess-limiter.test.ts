import { setImmediate } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Attempt, createGuessLimiter, type GuessLimiter } from '../../../src/access/oauth/guess-limiter.ts';
import { TokenError } from '../../../src/access/oauth/token-error.ts';
import { AnnalsError } from '../../../src/core/errors.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';

const victim = `acme.${'0'.repeat(20)}`;
const otherClientId = `acme.${'1'.repeat(20)}`;

function wrongSecret(): Promise<never> {
  return Promise.reject(new TokenError('invalid_client', 'Invalid client'));
}

/** 'tried', or the seconds of Retry-After. */
async function guess(limiter: GuessLimiter, attempt: Attempt, check = wrongSecret): Promise<string> {
  try {
    await limiter.limit(attempt, check);
    return 'tried';
  } catch (error) {
    return error instanceof AnnalsError ? (error.headers['Retry-After'] ?? '') : 'tried';
  }
}

async function guessOften(limiter: GuessLimiter, attempt: Attempt, times: number): Promise<string[]> {
  const results: string[] = [];
  for (let time = 0; time < times; time += 1) results.push(await guess(limiter, attempt));
  return results;
}

describe('guessing is slowed down', () => {
  let elapsed = 0;
  const wrong = { clientId: victim, clientSecret: 'wrong', address: '192.0.2.1' };
  const right = { ...wrong, clientSecret: 'right' };
  const token = () => Promise.resolve('a token');

  test('ten failures for a client from an address are free, then one in 5 seconds', async () => {
    const limiter = createGuessLimiter(() => elapsed);
    expect(await guessOften(limiter, wrong, 11)).toEqual([...Array<string>(10).fill('tried'), '5']);
    elapsed += 4_999;
    expect(await guess(limiter, wrong)).toBe('1');
    elapsed += 1;
    expect(await guess(limiter, wrong)).toBe('tried');
    expect(await guess(limiter, wrong)).toBe('5');
    elapsed += 50_000;
    expect(await guess(limiter, wrong)).toBe('tried');
  });

  test('of 300 guesses in parallel exactly ten are tried', async () => {
    const limiter = createGuessLimiter(() => elapsed);
    let tried = 0;
    const check = async () => {
      tried += 1;
      await setImmediate();
      return await wrongSecret();
    };
    const results = await Promise.all(Array.from({ length: 300 }, () => guess(limiter, wrong, check)));
    expect(tried).toBe(10);
    expect(results.filter((result) => result === '5')).toHaveLength(290);
  });

  test('300 requests in parallel with the right secret all get their token', async () => {
    const limiter = createGuessLimiter(() => elapsed);
    const check = async () => {
      await setImmediate();
      return 'a token';
    };
    const tokens = await Promise.all(Array.from({ length: 300 }, () => limiter.limit(right, check)));
    expect(new Set(tokens)).toEqual(new Set(['a token']));
  });

  test('a waiting client whose secret proves right no longer waits for guesses', async () => {
    const limiter = createGuessLimiter(() => elapsed);
    const first = Promise.withResolvers<string>();
    const guesses = Promise.withResolvers<void>();
    const check = () => guesses.promise.then(wrongSecret);
    const begun = limiter.limit(right, () => first.promise);
    const failing = Array.from({ length: 10 }, () => guess(limiter, wrong, check));
    const waiting = limiter.limit(right, token);
    first.resolve('a token');
    // The guess queued before it has taken the place of the first attempt.
    expect(await Promise.all([begun, waiting])).toEqual(['a token', 'a token']);
    guesses.resolve();
    expect(await Promise.all(failing)).toEqual(Array<string>(10).fill('tried'));
  });

  test('an attempt that fails for another reason does not count as a guess', async () => {
    const limiter = createGuessLimiter(() => elapsed);
    for (let time = 0; time < 20; time += 1) {
      await expect(limiter.limit(wrong, () => Promise.reject(new Error('no database')))).rejects.toThrow('no database');
    }
    expect(await guessOften(limiter, wrong, 11)).toEqual([...Array<string>(10).fill('tried'), '5']);
  });

  test('guesses lock out neither the client at another address nor another client at the same address', async () => {
    const limiter = createGuessLimiter(() => elapsed);
    await guessOften(limiter, wrong, 50);
    expect(await guess(limiter, wrong)).toBe('5');
    expect(await guess(limiter, { ...wrong, address: '192.0.2.2' })).toBe('tried');
    expect(await guess(limiter, { ...wrong, clientId: otherClientId })).toBe('tried');
  });

  test('an address that tries many clients is slowed down as well', async () => {
    const limiter = createGuessLimiter(() => elapsed);
    for (let failure = 0; failure < 100; failure += 1) {
      expect(await guess(limiter, { ...wrong, clientId: `id ${failure}` })).toBe('tried');
    }
    expect(await guess(limiter, { ...wrong, clientId: 'id' })).toBe('1');
  });

  test('a client that got a token before never waits; a wrong secret for it still does', async () => {
    const limiter = createGuessLimiter(() => elapsed);
    await limiter.limit(right, token);
    await guessOften(limiter, wrong, 50);
    expect(await limiter.limit(right, token)).toBe('a token');
    expect(await guess(limiter, wrong)).toBe('5');
  });

  test('addresses of one IPv6 network count as one', async () => {
    const limiter = createGuessLimiter(() => elapsed);
    for (let failure = 0; failure < 10; failure += 1) {
      await guess(limiter, { ...wrong, address: `2001:db8::${failure.toString(16)}:1` });
    }
    expect(await guess(limiter, { ...wrong, address: '2001:db8:0:0:ffff::' })).toBe('5');
    expect(await guess(limiter, { ...wrong, address: '2001:db8:0:1::' })).toBe('tried');
    expect(await guess(limiter, { ...wrong, address: '::ffff:192.0.2.1' })).toBe('tried');
  });
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
    const ask = (secret: string) =>
      server.call('/oauth/token', {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: client.clientId,
          client_secret: secret,
        }),
      });
    const begun = performance.now();
    const answers = await Promise.all(Array.from({ length: 30 }, (_, attempt) => ask(`wrong ${attempt}`)));
    // A slow machine may take long enough for further guesses, one in 5 seconds.
    const allowed = 10 + Math.floor((performance.now() - begun) / 5_000);
    const tried = answers.filter(({ status }) => status === 401).length;
    expect(tried).toBeGreaterThanOrEqual(10);
    expect(tried).toBeLessThanOrEqual(allowed);
    const [limited] = answers.filter(({ status }) => status === 429);
    if (limited === undefined) throw new Error('no guess was refused');
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await limited.json()).toEqual({
      status: 429,
      type: 'rate_limit_exceeded',
      message: 'Too many failed attempts to authenticate.',
    });
    expect(await server.tokenOf(client)).toMatch(/^ey/);
    expect(await server.tokenOf(fresh)).toMatch(/^ey/);
  });

  test.each([
    ['a trusted proxy', undefined, 200],
    ['anybody else', 'none', 429],
    ['a proxy that is not in the list', '10.0.0.0/8', 429],
    ['a proxy in the list', '10.0.0.0/8, 127.0.0.0/8, ::1', 200],
  ])('X-Forwarded-For of %s', async (_whose, proxies, status) => {
    const environment = proxies === undefined ? {} : { ANNALS_TRUSTED_PROXIES: proxies };
    const behindProxy = await startTestServer({ database: server.database, environment });
    try {
      const client = await behindProxy.createClient('acme');
      const guessFrom = async (address: string, secret: string) => {
        const response = await behindProxy.call('/oauth/token', {
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
      await Promise.all(Array.from({ length: 20 }, () => guessFrom('198.51.100.1', 'wrong')));
      expect(await guessFrom('198.51.100.2', client.clientSecret)).toBe(status);
    } finally {
      await behindProxy.close();
    }
  });
});
