import { afterAll, afterEach, expect, test } from 'vitest';
import { ProviderError } from '../../src/providers/port.ts';
import { ownPort } from '../support/server/own-port.ts';
import { comesTrueWithin, eventually } from '../support/server/patience.ts';
import { vendorSecret } from '../support/vendor/vendor-server.ts';
import { all, callOf, startModels, vendors } from './vendor-models.ts';

const { vendor, models, close } = await startModels();

afterEach(() => {
  vendor.behave({ kind: 'answer' });
  vendor.requests.length = 0;
});

afterAll(() => close());

const failures = [
  ['401', { kind: 'status', status: 401 }, { fault: 'key_refused', usage: 'none', status: 401 }],
  ['403', { kind: 'status', status: 403 }, { fault: 'key_refused', usage: 'none', status: 403 }],
  ['404', { kind: 'status', status: 404 }, { fault: 'model_unknown', usage: 'none', status: 404 }],
  ['400', { kind: 'status', status: 400 }, { fault: 'request_refused', usage: 'none', status: 400 }],
  [
    '429 with Retry-After',
    { kind: 'status', status: 429, headers: { 'retry-after': '17' } },
    { fault: 'rate_limited', usage: 'none', status: 429, retryAfter: '17' },
  ],
  ['500', { kind: 'status', status: 500 }, { fault: 'unavailable', usage: 'none', status: 500 }],
  ['503', { kind: 'status', status: 503 }, { fault: 'unavailable', usage: 'none', status: 503 }],
  ['504 of a gateway', { kind: 'status', status: 504 }, { fault: 'unavailable', usage: 'unknown', status: 504 }],
  [
    'a redirect',
    { kind: 'status', status: 307, headers: { location: '/elsewhere' } },
    { fault: 'unavailable', usage: 'none', status: 307 },
  ],
  ['not JSON', { kind: 'garbage' }, { fault: 'broken', usage: 'unknown' }],
  ['cut in the middle', { kind: 'cut' }, { fault: 'broken', usage: 'unknown' }],
] as const;

for (const of of vendors) {
  test.each(failures)(`${of.provider}: %s`, async (_what, behaviour, expected) => {
    vendor.behave(behaviour);
    for (const attempt of [() => models.call(callOf(of)), () => all(models, callOf(of))]) {
      const error = await attempt().catch((thrown) => thrown);
      expect(error).toBeInstanceOf(ProviderError);
      expect(error).toMatchObject(expected);
      expect(`${error.stack}${JSON.stringify(error)}${String(error.cause)}`).not.toContain(vendorSecret);
    }
  });

  test(`${of.provider}: a refusal is sent once and its connection used again`, async () => {
    vendor.behave({ kind: 'status', status: 500 });
    await models.call(callOf(of)).catch(() => {});
    await models.call(callOf(of)).catch(() => {});
    expect(vendor.requests).toHaveLength(2);
    expect(vendor.requests[0]?.connection).toBe(vendor.requests[1]?.connection);
  });

  test(`${of.provider}: slower than the limit is a timeout, of unknown cost, and closes the connection`, async () => {
    vendor.behave({ kind: 'hang' });
    const before = vendor.abandoned.length;
    const error = await models.call(callOf(of, { times: { silence: 100, total: 600_000 } })).catch((thrown) => thrown);
    expect(error).toMatchObject({ fault: 'timeout', usage: 'unknown' });
    await eventually(() => vendor.abandoned.length).toBe(before + 1);
  });

  test(`${of.provider}: the caller's signal closes the connection within 200 ms`, async () => {
    vendor.behave({ kind: 'hang' });
    const controller = new AbortController();
    const failed = models.call(callOf(of, { signal: controller.signal })).catch((thrown) => thrown);
    await eventually(() => vendor.requests.length).toBe(1);
    const before = vendor.abandoned.length;
    controller.abort();
    expect(await comesTrueWithin(200, () => vendor.abandoned.length > before)).toBe(true);
    expect(vendor.abandoned).toHaveLength(before + 1);
    expect(await failed).toMatchObject({ fault: 'aborted', usage: 'unknown' });
  });

  test(`${of.provider}: leaving a stream early closes its connection`, async () => {
    vendor.behave({ kind: 'stall' });
    const before = vendor.abandoned.length;
    const stop = new Error('the reader has gone');
    const left = models.call(callOf(of), () => Promise.reject(stop));
    expect(await left.catch((thrown: unknown) => thrown)).toBe(stop);
    await eventually(() => vendor.abandoned.length).toBe(before + 1);
  });
}

test.each(vendors)('$provider: an answer above the cap is reported as the vendor counted it', async (of) => {
  vendor.behave({ kind: 'answer', usage: { input: 5_000, output: 9_999 } });
  const { usage } = await models.call(callOf(of, { maxTokens: 16 }));
  expect(usage).toEqual({ inputTokens: 5_000, outputTokens: 9_999 });
});

test.each(vendors)('$provider: usage that is missing is unknown, not zero', async (of) => {
  vendor.behave({ kind: 'answer', usage: undefined });
  const { text, usage } = await models.call(callOf(of));
  expect({ text, usage }).toEqual({ text: 'Hello there', usage: { inputTokens: undefined, outputTokens: undefined } });
});

test('a refusal that has figures costs what they say', async () => {
  const body = { error: { message: vendorSecret }, usage: { prompt_tokens: 7, completion_tokens: 2 } };
  vendor.behave({ kind: 'status', status: 400, body });
  await expect(models.call(callOf(vendors[0]))).rejects.toMatchObject({ usage: { inputTokens: 7, outputTokens: 2 } });
});

test('google: a name that would lead to another path than that of a model is unknown, and no call leaves', async () => {
  const [, , google] = vendors;
  for (const model of ['../admin', 'gemini/../../x', 'a?key=1', 'a#b', 'a\\b', 'a b', 'a%2fb', '/a', 'a/', '..', '']) {
    for (const attempt of [
      () => models.call(callOf(google, { model })),
      () => all(models, callOf(google, { model })),
    ]) {
      const error = await attempt().catch((thrown) => thrown);
      expect(error, model).toMatchObject({ fault: 'model_unknown', usage: 'none', status: undefined });
    }
  }
  expect((await models.call(callOf(google))).text).not.toBe('');
  for (const model of ['tunedModels/shop-7', 'publishers/google/models/gemini-3.8@001']) {
    const error = await models.call(callOf(google, { model })).catch((thrown) => thrown);
    expect(error, 'the vendor says that there is no such model').toMatchObject({ status: 404 });
  }
});

test('a call to a port without a listener is never sent and costs nothing', async () => {
  const baseUrl = `http://127.0.0.1:${await ownPort()}`;
  await expect(models.call(callOf(vendors[0], { baseUrl }))).rejects.toMatchObject({
    fault: 'unreachable',
    usage: 'none',
  });
});

test('a call that was given up before it left costs nothing', async () => {
  const signal = AbortSignal.abort();
  await expect(models.call(callOf(vendors[0], { signal }))).rejects.toMatchObject({ fault: 'aborted', usage: 'none' });
  expect(vendor.requests).toEqual([]);
});

test('a Retry-After that is neither seconds nor a date is not passed on', async () => {
  vendor.behave({ kind: 'status', status: 429, headers: { 'retry-after': vendorSecret } });
  const error = await models.call(callOf(vendors[0])).catch((thrown) => thrown);
  expect(error.retryAfter).toBeUndefined();
});

const refusals = [
  ['openai', 400, { error: { code: 'context_length_exceeded' } }, 'context_length_exceeded'],
  ['openai', 400, { error: { code: 'content_filter' } }, 'content_filtered'],
  ['openai', 429, { error: { code: 'insufficient_quota', type: 'insufficient_quota' } }, 'quota_exhausted'],
  ['openai', 429, { error: { code: 'rate_limit_exceeded' } }, 'rate_limited'],
  ['anthropic', 400, { error: { message: 'prompt is too long: 9 tokens > 8 maximum' } }, 'context_length_exceeded'],
  ['anthropic', 413, { error: { message: 'Request exceeds the maximum size' } }, 'context_length_exceeded'],
  ['anthropic', 400, { error: { message: 'max_tokens: must be less' } }, 'request_refused'],
  ['google', 400, { error: { message: 'The input token count (9) exceeds the maximum' } }, 'context_length_exceeded'],
  ['google', 400, { error: { message: 'Invalid JSON payload' } }, 'request_refused'],
] as const;

test.each(refusals)('%s: a %i of %j is reported as %4$s', async (provider, status, body, fault) => {
  const of = vendors.find((candidate) => candidate.provider === provider) ?? vendors[0];
  vendor.behave({ kind: 'status', status, body });
  expect(await models.call(callOf(of)).catch((error) => error)).toMatchObject({ fault, usage: 'none' });
});
