import { type JsonObject, parseJson, stringifyJson } from '@annals/client/json';
import { describe, expect, test } from 'vitest';
import { type OwnKind, planOf } from '../src/bring-back/plan.ts';

function object(text: string): JsonObject {
  const parsed = parseJson(text);
  if (parsed instanceof Map) return parsed;
  throw new Error('no object');
}

function plan(kind: OwnKind, then: string, today: string | undefined) {
  const planned = planOf(kind, object(then), today === undefined ? undefined : object(today));
  return 'refused' in planned ? planned.refused : { ...planned, next: stringifyJson(planned.next) };
}

describe('an instance', () => {
  test('is written as it was, with every digit, without what the service sets', () => {
    const then = '{"id":"a","metadata":{"version":1,"createdAt":"x","modifiedAt":"y"},"price":1.10,"lines":[1,2]}';
    const today = '{"id":"a","metadata":{"version":7,"createdAt":"x","modifiedAt":"z"},"price":2}';
    expect(plan('instance', then, today)).toMatchObject({ next: '{"price":1.10,"lines":[1,2]}', stays: [] });
    expect(plan('instance', then, undefined)).toMatchObject({ next: '{"price":1.10,"lines":[1,2]}', today: undefined });
  });

  test('has no mask written: the value of today stays, or none', () => {
    const then = '{"card":{"number":"********","holder":"A"},"codes":["x","********"],"pin":"********"}';
    const today = '{"card":{"number":"1234","holder":"B"},"codes":["y"]}';
    expect(plan('instance', then, today)).toMatchObject({
      next: '{"card":{"number":"1234","holder":"A"},"codes":["y"]}',
      stays: [
        expect.stringMatching(/^card\.number stays/),
        expect.stringMatching(/^codes stays/),
        expect.stringMatching(/^pin is left out/),
      ],
    });
    expect(plan('instance', then, undefined)).toMatchObject({ next: '{"card":{"holder":"A"}}' });
  });
});

describe('an agent', () => {
  const agent = (llmConfig: string, prompt: string) => `{"id":"d","userPrompt":"${prompt}","llmConfig":${llmConfig}}`;
  const openai = '{"provider":"openai","model":"m","apiKey":"********"}';
  const shared = '{"provider":"shared"}';
  const own = (url: string) => `{"provider":"self_hosted","model":"m","baseUrl":"${url}","apiKey":"********"}`;

  test('without a key is as it was, deleted ones too', () => {
    const next = '{"userPrompt":"old","llmConfig":{"provider":"shared"}}';
    expect(plan('agent', agent(shared, 'old'), agent(openai, 'new'))).toMatchObject({ next, stays: [] });
    expect(plan('agent', agent(shared, 'old'), undefined)).toMatchObject({ next });
  });

  test('keeps the key of today where it is for the same provider and address', () => {
    const kept = plan('agent', agent(openai, 'old'), agent(openai, 'new'));
    expect(kept).toMatchObject({
      next: expect.stringContaining('"old"'),
      stays: [expect.stringMatching(/apiKey stays/)],
    });
  });

  test('keeps the headers of its servers where they are for the same names and addresses, and else the servers of today', () => {
    const served = (url: string, tools: string) =>
      `{"llmConfig":${shared},"mcpServers":[{"name":"docs","url":"${url}","headers":{"A":"********"},"tools":[${tools}]}]}`;
    expect(plan('agent', served('http://a', ''), served('http://a', '1'))).toMatchObject({
      next: served('http://a', ''),
      stays: [expect.stringMatching(/^The headers of mcpServers stay/)],
    });
    expect(plan('agent', served('http://a', ''), served('http://b', '1'))).toMatchObject({
      next: served('http://b', '1'),
      stays: [expect.stringMatching(/^mcpServers stays/)],
    });
    expect(plan('agent', served('http://a', ''), undefined)).toMatchObject({
      next: `{"llmConfig":${shared}}`,
      stays: [expect.stringMatching(/^mcpServers is left out/)],
    });
  });

  test.each([
    ['another provider', openai, own('http://a')],
    ['another address', own('http://a'), own('http://b')],
    ['no key', openai, shared],
  ])('keeps the whole configuration of the model where today has %s', (_case, was, is) => {
    expect(plan('agent', agent(was, 'old'), agent(is, 'new'))).toMatchObject({
      next: `{"userPrompt":"old","llmConfig":${is}}`,
      stays: [expect.stringMatching(/^llmConfig stays/)],
    });
  });

  test('with a key that is deleted cannot be created again', () => {
    expect(plan('agent', agent(openai, 'old'), undefined)).toMatch(/key/);
  });
});

describe('a setting', () => {
  const setting = (value: string, secured: boolean, description: string) =>
    `{"key":"k","value":${value},"version":3,"description":"${description}","secured":${secured}}`;
  const secret = '"********"';

  test('is as it was', () => {
    expect(plan('configuration', setting('1.10', false, 'old'), setting('2', false, 'new'))).toMatchObject({
      next: '{"value":1.10,"description":"old","secured":false}',
      stays: [],
    });
  });

  test.each([
    [
      'then and today',
      setting(secret, true, 'old'),
      setting(secret, true, 'new'),
      `${secret},"description":"old","secured":true`,
    ],
    ['then alone', setting(secret, true, 'old'), setting('5', false, 'new'), '5,"description":"old","secured":false'],
    [
      'today alone',
      setting('5', false, 'old'),
      setting(secret, true, 'new'),
      `${secret},"description":"old","secured":true`,
    ],
  ])('that was secured %s keeps the value of today', (_case, then, today, next) => {
    expect(plan('configuration', then, today)).toMatchObject({
      next: `{"value":${next}}`,
      stays: [expect.stringMatching(/^value stays/)],
    });
  });

  test('that is deleted is created again, unless its value was secured', () => {
    expect(plan('configuration', setting('5', false, 'old'), undefined)).toMatchObject({ today: undefined });
    expect(plan('configuration', setting(secret, true, 'old'), undefined)).toMatch(/secured/);
  });
});
