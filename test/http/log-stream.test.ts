import { spawnSync } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger, LogStream } from '../../src/http/logger.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
let files = 0;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

function startLog() {
  files += 1;
  const file = join(folder, String(files));
  const stream = new LogStream(openSync(file, 'a'));
  const written = () => readFileSync(file, 'utf8');
  /** The messages that are in the file. */
  const messages = () => Array.from(written().matchAll(/"msg":"(.*?)"/g), ([, message]) => message);
  return { logger: createLogger('info', stream), stream, messages, written };
}

/** Waits without timers: `vi.waitUntil` would advance the fake ones. */
async function until(isTrue: () => boolean, maxTurns = Number.POSITIVE_INFINITY): Promise<void> {
  for (let turn = 0; turn < maxTurns && !isTrue(); turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Time for a write that has begun to end. */
const aWhile = () => until(() => false, 200);

test('lines wait 50 ms for others, and no longer', async () => {
  const { logger, messages } = startLog();
  logger.info('one');
  logger.info('two');
  vi.advanceTimersByTime(49);
  await aWhile();
  expect(messages()).toEqual([]);
  vi.advanceTimersByTime(1);
  await until(() => messages().length === 2);
  logger.info('three');
  vi.advanceTimersByTime(50);
  await until(() => messages().length === 3);
  expect(messages()).toEqual(['one', 'two', 'three']);
});

test.each(['warn', 'error', 'fatal'] as const)(
  'a line of the level %s goes out at once, after those before',
  async (level) => {
    const { logger, messages } = startLog();
    logger.info('before');
    logger[level]('now');
    await until(() => messages().length === 2);
    expect(messages()).toEqual(['before', 'now']);
  },
);

test('a line of a worker goes out at once where it comes behind another one', async () => {
  const { stream, written } = startLog();
  stream.write('{"level":"info","worker":1}\n{"level":"warn","worker":1}\n');
  await until(() => written().endsWith('{"level":"warn","worker":1}\n'));
});

test('16,384 characters wait for no more, and 16,383 do', async () => {
  const [short, long] = [startLog(), startLog()];
  short.stream.write(`${'a'.repeat(16_382)}\n`);
  long.stream.write(`${'a'.repeat(16_383)}\n`);
  await until(() => long.written().length === 16_384);
  await aWhile();
  expect(short.written()).toBe('');
  short.stream.flushSync();
  expect(short.written()).toHaveLength(16_383);
});

test('it says when it wants no more, and when it does again', async () => {
  const { stream } = startLog();
  expect(stream.write('a line\n')).toBe(true);
  expect(stream.write(`${'b'.repeat(17_000)}\n`)).toBe(false);
  await new Promise<void>((resolve) => stream.once('drain', resolve));
  expect(stream.write('another line\n')).toBe(true);
});

test.each(['process.exit()', 'null.fails'])('a process that ends by %s writes what is left', async (end) => {
  const module = JSON.stringify(join(import.meta.dirname, '../../src/http/logger.ts'));
  const script = `const { createLogger } = await import(${module}); createLogger('info').info('the last'); ${end};`;
  const child = spawnSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' });
  expect(child.stderr).toContain('"msg":"the last"}\n');
});
