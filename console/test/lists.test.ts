import type { Job, RequestLog } from '@annals/client';
import { expect, test } from 'vitest';
import { quoted } from '../../src/query/written.ts';
import { durationText } from '../src/components/numbers.ts';
import { directionOf, nextSort } from '../src/components/table.tsx';
import { turnsOf } from '../src/desk/logs/session-turns.ts';

test('a click on a heading sorts up, a second one down, and another field begins anew', () => {
  expect(nextSort('', 'name')).toBe('name:ASC');
  expect(nextSort('name:ASC', 'name')).toBe('name:DESC');
  expect(nextSort('name:desc', 'name')).toBe('name:ASC');
  expect(nextSort('name:DESC,_id:ASC', 'amount')).toBe('amount:ASC');
  expect(directionOf('name', 'name')).toBe('ASC');
  expect(directionOf('name', 'nam')).toBeUndefined();
});

test('a text in a query stands for itself, whatever it holds', () => {
  expect(quoted('a "b" \\ * (c)')).toBe('"a \\"b\\" \\\\ * (c)"');
});

test('durations are in the unit that fits', () => {
  expect([0, 999, 1_000, 59_940, 185_000].map(durationText)).toEqual([
    '0 ms',
    '999 ms',
    '1.0 s',
    '59.9 s',
    '3 min 5 s',
  ]);
});

test('the requests of a session have the texts of jobs and of this tab, and others have none', () => {
  const log = (requestId: string) => ({ id: requestId, requestId }) as RequestLog;
  const job = { requestId: 'r1', request: 'Asked by a job', message: 'Answered' } as Job;
  const turn = { message: 'Asked here', answer: 'Ans', state: 'stopped', requestId: 'r2', error: undefined } as const;
  const conversation = { sessionId: 's', agentId: 'a', turns: [turn] };
  const turns = turnsOf([log('r1'), log('r2'), log('r3')], { jobs: [job], conversation });
  expect(turns.map(({ message, answer }) => [message, answer])).toEqual([
    ['Asked by a job', 'Answered'],
    ['Asked here', 'Ans'],
    [undefined, undefined],
  ]);
});
