import pg from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger } from '../../src/http/logger.ts';

const second = 1_000;
let lines: { level: string; msg: string; repeated?: number; requestId?: string }[];
let logger: ReturnType<typeof createLogger>;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  lines = [];
  logger = createLogger('info', { write: (line) => void lines.push(JSON.parse(line)) });
});

afterEach(() => vi.useRealTimers());

function away(host = '127.0.0.1:6511', reason = 'Connection refused'): Error {
  const message = `connection to the remote node annals@${host} failed with the following error: ${reason}`;
  return Object.assign(new pg.DatabaseError(message, message.length, 'error'), { severity: 'ERROR', code: '08006' });
}

const logged = () => lines.map(({ msg, repeated }) => [msg, repeated]);

test('a warning that a server is away is written once, and each minute with the number of those left out', async () => {
  for (let n = 0; n < 130; n += 1) {
    logger.child({ requestId: `${n}` }).warn({ err: away() }, 'folding failed');
    vi.advanceTimersByTime(second);
  }
  expect(logged()).toEqual([
    ['folding failed', undefined],
    ['folding failed', 59],
    ['folding failed', 60],
  ]);
});

test.each(['53100', '25006'])('so is a warning that the database takes no writes (%s)', (code) => {
  const error = Object.assign(new pg.DatabaseError('cannot write', 12, 'error'), { severity: 'ERROR', code });
  for (let n = 0; n < 3; n += 1) logger.warn({ err: error }, 'folding failed');
  vi.advanceTimersByTime(15 * second);
  expect(logged()).toEqual([
    ['folding failed', undefined],
    ['folding failed', 2],
  ]);
});

test('different reasons of one server are one state', () => {
  logger.warn({ err: away() }, 'folding failed');
  logger.warn({ err: away('127.0.0.1:6511', 'the database system is starting up') }, 'folding failed');
  expect(lines).toHaveLength(1);
});

test('the end of the state tells the rest, and the next state begins with a line', () => {
  for (let n = 0; n < 4; n += 1) logger.warn({ err: away() }, 'folding failed');
  vi.advanceTimersByTime(15 * second);
  logger.warn({ err: away() }, 'folding failed');
  vi.advanceTimersByTime(15 * second);
  expect(logged()).toEqual([
    ['folding failed', undefined],
    ['folding failed', 3],
    ['folding failed', undefined],
  ]);
});

test('another message, another server and another cause have lines of their own', () => {
  logger.warn({ err: away() }, 'folding failed');
  logger.warn({ err: away() }, 'looking for jobs failed');
  logger.warn({ err: away('127.0.0.1:6512') }, 'folding failed');
  logger.warn({ err: new Error('disk full') }, 'folding failed');
  logger.warn({ err: new Error('disk full') }, 'folding failed');
  expect(lines).toHaveLength(5);
});

test('no error is left out: the answer 500 of each request has its line', () => {
  for (let n = 0; n < 3; n += 1) logger.error({ err: away() }, 'request failed');
  expect(lines).toHaveLength(3);
});

test('of many states at a time those beyond 100 are written line by line', () => {
  for (let n = 0; n < 101; n += 1) {
    logger.warn({ err: away(`10.0.0.${n}:5432`) }, 'folding failed');
    logger.warn({ err: away(`10.0.0.${n}:5432`) }, 'folding failed');
  }
  expect(lines).toHaveLength(102);
});
