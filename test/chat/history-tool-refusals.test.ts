import { expect, test } from 'vitest';
import { runHistoryTool } from '../../src/agents/history-tool.ts';
import { AnnalsError } from '../../src/errors.ts';

const call = { id: 'call-1', name: 'change-history', input: '{"q":"entity:order"}' };
const chat = { tenant: 'acme', mayRead: true, maxBytes: 1_000, signal: undefined };

test('a query that took too long comes back to the model, which can narrow it', async () => {
  const tooSlow = new AnnalsError('service_unavailable', 'The query was not answered within 30 seconds.');
  const outcome = await runHistoryTool(() => Promise.reject(tooSlow), call, chat);
  expect(outcome).toEqual({
    output: '{"error":"The query was not answered within 30 seconds."}',
    said: 'a query that was not answered: entity:order',
    fromHistory: true,
  });
});

test.each([
  ['an error that nobody foresaw', new Error('the database is away')],
  ['one that is known as internal', new AnnalsError('internal_service_error', 'An internal error occurred.')],
])('a fault of the service is none that the model is told of: %s', async (_title, fault) => {
  await expect(runHistoryTool(() => Promise.reject(fault), call, chat)).rejects.toBe(fault);
});
