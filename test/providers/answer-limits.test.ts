import { afterAll, describe, expect, test } from 'vitest';
import { answerLimits, EventMeter, hasMoreValues } from '../../src/providers/answer-limits.ts';
import type { ModelCall } from '../../src/providers/port.ts';
import { eventually } from '../support/server/patience.ts';
import { all, type StreamEvent, startModels } from './vendor-models.ts';

const { vendor, models, close } = await startModels();

afterAll(() => close());

describe('an answer in one piece', () => {
  test(`may have ${answerLimits.wholeBytes} bytes, and no more`, async () => {
    const around = JSON.stringify(answerOf('')).length;
    const fitting = 'a'.repeat(answerLimits.wholeBytes - around);
    vendor.behave({ kind: 'status', status: 200, body: answerOf(fitting) });
    expect((await models.call(callOf())).text).toHaveLength(fitting.length);
    vendor.behave({ kind: 'status', status: 200, body: answerOf(`${fitting}a`) });
    expect(await faultOf(models.call(callOf()))).toMatchObject({ fault: 'broken', usage: 'unknown' });
  });

  test(`may have ${answerLimits.wholeValues} JSON values, and no more`, async () => {
    const toolCalls = (count: number) => ({
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'x', tool_calls: [], extra: Array(count).fill(0) },
          finish_reason: 'stop',
        },
      ],
    });
    vendor.behave({ kind: 'status', status: 200, body: toolCalls(answerLimits.wholeValues - 20) });
    expect((await models.call(callOf())).text).toBe('x');
    vendor.behave({ kind: 'status', status: 200, body: toolCalls(answerLimits.wholeValues) });
    expect(await faultOf(models.call(callOf()))).toMatchObject({ fault: 'broken' });
  });
});

describe('a stream', () => {
  test(`may give ${answerLimits.streamedTextBytes} bytes of text, and no more`, async () => {
    const piece = 'a'.repeat(64 * 1024);
    const pieces = Array<string>(answerLimits.streamedTextBytes / piece.length).fill(piece);
    vendor.behave({ kind: 'events', events: [...pieces.map(textEvent), ...ending] });
    expect(textOf(await all(models, callOf()))).toHaveLength(answerLimits.streamedTextBytes);
    vendor.behave({ kind: 'events', events: [...pieces.map(textEvent), textEvent('b'), ...ending] });
    expect(await faultOf(all(models, callOf()))).toMatchObject({ fault: 'broken' });
  });

  test(`has events of less than ${answerLimits.eventBytes} bytes`, async () => {
    const around = textEvent('').length;
    const fitting = textEvent('a'.repeat(answerLimits.eventBytes - around - 2));
    vendor.behave({ kind: 'events', events: [fitting, ...ending] });
    expect((await all(models, callOf())).length).toBeGreaterThan(1);
    const beyond = textEvent('a'.repeat(answerLimits.eventBytes));
    vendor.behave({ kind: 'events', events: [beyond, ...ending] });
    expect(await faultOf(all(models, callOf()))).toMatchObject({ fault: 'broken' });
  });

  test(`may begin ${answerLimits.toolCalls} tool calls, and no more`, async () => {
    const begin = (index: number) => {
      const call = { index, id: `c${index}`, type: 'function', function: { name: 'find', arguments: '{}' } };
      return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] })}\n\n`;
    };
    const calls = Array.from({ length: answerLimits.toolCalls }, (_, index) => begin(index));
    vendor.behave({ kind: 'events', events: [...calls, ...ending] });
    expect((await all(models, callOf())).at(-1)).toMatchObject({
      answer: { toolCalls: { length: answerLimits.toolCalls } },
    });
    vendor.behave({ kind: 'events', events: [...calls, begin(answerLimits.toolCalls), ...ending] });
    expect(await faultOf(all(models, callOf()))).toMatchObject({ fault: 'broken' });
  });

  test(`may have ${answerLimits.streamBytes} bytes in all, and no more`, async () => {
    const comment = `: ${'x'.repeat(128 * 1024 - 4)}\n\n`;
    const comments = Array<string>(answerLimits.streamBytes / comment.length - 1).fill(comment);
    vendor.behave({ kind: 'events', events: [...comments, textEvent('after all of it'), ...ending] });
    expect(textOf(await all(models, callOf()))).toBe('after all of it');
    vendor.behave({ kind: 'events', events: [...comments, comment, textEvent('too late'), ...ending] });
    expect(await faultOf(all(models, callOf()))).toMatchObject({ fault: 'broken' });
  });

  test('that is cut yields what came before, and is reported as cut with the usage so far', async () => {
    const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 3 } })}\n\n`;
    const words = Array.from({ length: 200 }, (_, index) => `${index} `);
    vendor.behave({ kind: 'events', events: [...words.map(textEvent), usage], last: 'cut' });
    const events: StreamEvent[] = [];
    const reading = models.call(callOf(), async (text) => {
      events.push({ type: 'text', text });
      // The cut comes while pieces are still to be read.
      if (events.length === 1) await new Promise((resolve) => setTimeout(resolve, 100));
    });
    expect(await faultOf(reading)).toMatchObject({
      fault: 'broken',
      usage: 'unknown',
      reported: { inputTokens: 9, outputTokens: 3 },
    });
    expect(textOf(events)).toBe(words.join(''));
  });

  test('that flows continues beyond the time for silence, and one that falls silent is a timeout', async () => {
    // A busy machine may stall for longer than the vendor pauses, but not for this long.
    const times = { silence: 3_000, total: 600_000 };
    const words = Array.from({ length: 12 }, (_, index) => textEvent(`${index} `));
    vendor.behave({ kind: 'events', events: [...words, ...ending], every: 300 });
    expect(textOf(await all(models, callOf({ times })))).toBe('0 1 2 3 4 5 6 7 8 9 10 11 ');
    vendor.behave({ kind: 'events', events: words.slice(0, 3), last: 'stall' });
    const before = vendor.abandoned.length;
    expect(await faultOf(all(models, callOf({ times })))).toMatchObject({ fault: 'timeout' });
    await eventually(() => vendor.abandoned.length).toBe(before + 1);
  });

  test('that flows without an end is a timeout once its whole time is over', async () => {
    const times = { silence: 10_000, total: 700 };
    vendor.behave({ kind: 'events', events: Array(200).fill(textEvent('on ')), every: 50 });
    const begun = performance.now();
    expect(await faultOf(all(models, callOf({ times })))).toMatchObject({ fault: 'timeout' });
    expect(performance.now() - begun).toBeGreaterThan(650);
  });

  test('whose reader pauses is not silent', async () => {
    const times = { silence: 2_000, total: 600_000 };
    const events = Array.from({ length: 400 }, () => textEvent('a'.repeat(4_096)));
    vendor.behave({ kind: 'events', events: [...events, ...ending] });
    let length = 0;
    await models.call(callOf({ times }), async (text) => {
      if (length === 0) await new Promise((resolve) => setTimeout(resolve, 3_000));
      length += text.length;
    });
    expect(length).toBe(400 * 4_096);
  });
});

/** Has the provider answer with that number of tool calls and characters of input in each. */
function answerWithCalls(count: number, length: number): void {
  const calls = Array.from({ length: count }, (_, index) => ({
    id: `c${index}`,
    type: 'function',
    function: { name: 'change-history', arguments: JSON.stringify({ q: 'x'.repeat(length) }) },
  }));
  const choice = {
    index: 0,
    message: { role: 'assistant', content: null, tool_calls: calls },
    finish_reason: 'tool_calls',
  };
  vendor.behave({ kind: 'status', status: 200, body: { choices: [choice, choice] } });
}

test(`of a long answer the first ${answerLimits.checkedToolCalls} tool calls are read, and the others are counted`, async () => {
  const { checkedToolCalls } = answerLimits;
  answerWithCalls(checkedToolCalls, 1_000);
  const whole = await models.call(callOf());
  expect(whole.toolCalls).toHaveLength(checkedToolCalls);
  expect(whole).not.toHaveProperty('unreadToolCalls');
  answerWithCalls(checkedToolCalls + 1, 1_000);
  expect(await models.call(callOf())).toMatchObject({ toolCalls: whole.toolCalls, unreadToolCalls: 1 });
});

test('of a short answer all tool calls are read', async () => {
  answerWithCalls(answerLimits.checkedToolCalls + 1, 1);
  const { toolCalls, ...others } = await models.call(callOf());
  expect(toolCalls).toHaveLength(answerLimits.checkedToolCalls + 1);
  expect(others).not.toHaveProperty('unreadToolCalls');
});

test('values are counted outside of strings alone', () => {
  const text = Buffer.from('{"a,[{\\"":[1,2,{"b":"[,,"}]}');
  expect(hasMoreValues(text, 6)).toBe(false);
  expect(hasMoreValues(text, 5)).toBe(true);
});

test.each(['\n\n', '\r\n\r\n'])('an event is measured across pieces, up to the empty line after it: %j', (end) => {
  const meter = new EventMeter();
  const max = 20;
  for (const byte of Buffer.from(`data: 12345678${end}data: 12345678${end}`)) {
    expect(meter.isBeyond(Buffer.from([byte]), max)).toBe(false);
  }
  expect(meter.isBeyond(Buffer.from(`data: 1234${end}data: 1`), max)).toBe(false);
  expect(meter.isBeyond(Buffer.from('23456789012345'), max)).toBe(true);
});

const ending = [
  'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
  'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}\n\n',
  'data: [DONE]\n\n',
];

function textEvent(content: string): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`;
}

function answerOf(content: string) {
  return { choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] };
}

function callOf(more: Partial<ModelCall> = {}): ModelCall {
  return {
    provider: 'self_hosted',
    model: 'm',
    apiKey: '',
    baseUrl: `${vendor.baseUrl}/v1`,
    messages: [{ role: 'user', content: 'question' }],
    maxTokens: 100,
    times: { silence: 30_000, total: 600_000 },
    ...more,
  };
}

function textOf(events: readonly StreamEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.text : '')).join('');
}

async function faultOf(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    () => 'none',
    (error: unknown) => error,
  );
}
