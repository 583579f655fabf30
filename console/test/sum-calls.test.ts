import { expect, test } from 'vitest';
import { sumCalls } from '../src/desk/costs/sum-calls.ts';

test('sums have every digit of costs', () => {
  const calls = ['0.000000000001', '12.1', '0.2'].map((costUsd) => ({ inputTokens: 2, outputTokens: 1, costUsd }));
  expect(sumCalls(calls)).toEqual({
    inputTokens: 6,
    outputTokens: 3,
    lacksTokens: false,
    costUsd: '12.300000000001',
    lacksCost: false,
  });
});

test('what is unknown of a call is told, and what is known is counted', () => {
  const known = { inputTokens: 2, outputTokens: 1, costUsd: '1' };
  expect(sumCalls([known, { ...known, costUsd: null }])).toMatchObject({ costUsd: '1', lacksCost: true });
  expect(sumCalls([known, { inputTokens: 2, costUsd: '1' }])).toMatchObject({ outputTokens: 1, lacksTokens: true });
  expect(sumCalls([{ ...known, costUsd: null }])).toMatchObject({ costUsd: undefined, lacksCost: true });
});
