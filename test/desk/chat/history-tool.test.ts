import { expect, test } from 'vitest';
import { AnnalsError } from '../../../src/core/errors.ts';
import { runHistoryTool } from '../../../src/desk/agents/history-tool.ts';
import type { AskHistory } from '../../../src/desk/agents/ports.ts';
import { maxResultBytes } from '../../../src/query/model-tool.ts';

const call = { id: 'call-1', name: 'change-history', input: '{"q":"entity:order"}' };
const reader = { clientId: 'c', clientName: 'Jane', scopes: [] };
const chat = { tenant: 'acme', reader, mayRead: true, room: { left: 1_000, window: 1_000_000 }, signal: undefined };

test('a query that took too long comes back to the model, which can narrow it', async () => {
  const tooSlow = new AnnalsError('service_unavailable', 'The query was not answered within 30 seconds.');
  const outcome = await runHistoryTool(() => Promise.reject(tooSlow), call, chat);
  expect(outcome).toEqual({
    output: '{"error":"The query was not answered within 30 seconds."}',
    logText: 'a query that was not answered: entity:order',
    fromHistory: true,
  });
});

test.each([
  ['an unexpected error', new Error('the database is away')],
  ['an internal error', new AnnalsError('internal_service_error', 'An internal error occurred.')],
])('an error of the service rejects and does not reach the model: %s', async (_title, fault) => {
  await expect(runHistoryTool(() => Promise.reject(fault), call, chat)).rejects.toBe(fault);
});

test.each([
  ['what is left for the chat', maxResultBytes - 1, maxResultBytes - 1],
  ['48 KiB', maxResultBytes, maxResultBytes],
  ['48 KiB, however much is left for the chat', maxResultBytes + 1, maxResultBytes],
])('a result has at most %s', async (_title, left, allowed) => {
  const limits: number[] = [];
  const ask: AskHistory = async (_tenant, { maxBytes }) => {
    limits.push(maxBytes);
    return { text: '{}', shown: 0, left: 0, cut: 0, total: 0 };
  };
  await runHistoryTool(ask, call, { ...chat, room: { left, window: 1_000_000 } });
  await runHistoryTool(ask, call, { ...chat, room: { left: 1_000_000, window: left } });
  expect(limits).toEqual([allowed, allowed]);
});

test.each([
  ['no query', '{}'],
  ['no input', ''],
  ['a query under another name', '{"query":"entity:order"}'],
  ['a query and something else', '{"q":"entity:order","filter":"type:create"}'],
  ['a query that is no text', '{"q":{"entity":"order"}}'],
])('a call with %s is answered with its mistake, and no query runs', async (_title, input) => {
  const ask: AskHistory = () => Promise.reject(new Error('asked'));
  const outcome = await runHistoryTool(ask, { ...call, input }, chat);
  expect(outcome).toMatchObject({ output: expect.stringContaining('The input must be'), fromHistory: false });
});
