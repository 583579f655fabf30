import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { restartPause } from '../../src/cli/workers/supervise.ts';
import { closeUntakenConnections } from '../../src/cli/workers/untaken-connections.ts';
import { passOnLines } from '../../src/cli/workers/whole-lines.ts';
import { heapOfWorker, runtimeOptions, workerCount } from '../../src/cli/workers/worker-count.ts';
import { readConfig } from '../../src/core/config/config.ts';
import type { HttpServer } from '../../src/http/http-server-type.ts';
import { whileListening } from '../../src/http/while-listening.ts';
import { sharesOf } from '../../src/postgres/connections/tenant-pool.ts';

test('a worker that dies again within a minute waits twice as long each time, 30 s at most', () => {
  const pauses: number[] = [];
  for (let death = 0; death < 8; death++) pauses.push(restartPause(pauses.at(-1), 59_999));
  expect(pauses).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  expect(restartPause(30_000, 60_000)).toBe(0);
});

test('processes on one port divide the connections, and each keeps two for reads and two for writes', () => {
  expect(sharesOf(1)).toEqual({ reads: 8, writes: 6, own: 4 });
  expect(sharesOf(2)).toEqual({ reads: 4, writes: 3, own: 4 });
  expect(sharesOf(3)).toEqual({ reads: 3, writes: 2, own: 4 });
  expect(sharesOf(128)).toEqual({ reads: 2, writes: 2, own: 4 });
});

test('the heaps of all workers have at most three quarters of the memory, and each at least 256 MiB', () => {
  const gib = 1024 ** 3;
  expect(heapOfWorker(2, { memory: 24 * gib, heapLimit: 4 * gib })).toBe(4096);
  expect(heapOfWorker(4, { memory: 8 * gib, heapLimit: 4 * gib })).toBe(1536);
  expect(heapOfWorker(8, { memory: gib, heapLimit: 4 * gib })).toBe(256);
});

test('a heap limit of the operator stays', () => {
  expect(runtimeOptions(2, ['--cpu-prof'])).toEqual([
    '--cpu-prof',
    expect.stringMatching(/^--max-old-space-size=\d+$/),
  ]);
  expect(runtimeOptions(2, ['--max-old-space-size=300'])).toEqual(['--max-old-space-size=300']);
  expect(runtimeOptions(2, [], '--max_old_space_size=300')).toEqual([]);
});

test('max is a worker for each core', () => {
  expect(workerCount(readConfig({ ANNALS_WORKERS: '3' }))).toBe(3);
  const cores = workerCount(readConfig({ ANNALS_WORKERS: 'max' }));
  expect(cores).toBeGreaterThanOrEqual(1);
  expect(cores).toBeLessThanOrEqual(128);
});

test('a connection on its way to a worker that dies is closed, also one that is passed on after the death', () => {
  const worker = Object.assign(new EventEmitter(), { send: () => true });
  closeUntakenConnections(worker);
  const closed: string[] = [];
  const passOn = (name: string) => {
    const connection = { close: () => closed.push(name) };
    return Reflect.apply(worker.send, worker, [{ act: 'newconn', key: 'port' }, connection]);
  };
  expect(passOn('before')).toBe(true);
  expect(closed).toEqual([]);
  worker.emit('exit', null, 'SIGKILL');
  expect(closed).toEqual(['before']);
  passOn('after');
  expect(closed).toEqual(['before', 'after']);
});

test('lines of a process are passed on whole, and half a line when the process has ended', async () => {
  const source = new PassThrough();
  const passed: string[] = [];
  const sink = { write: (text: string) => passed.push(text) > 0, once: () => {} };
  const done = passOnLines(source, sink);
  const bytes = Buffer.from('{"a":"ä"}\n{"b":2}\n{"c":3}\n{"d"');
  // In the middle of a character, of a line, and at its end.
  for (const [from, to] of [
    [0, 7],
    [7, 14],
    [14, 19],
    [19, bytes.length],
  ]) {
    source.write(bytes.subarray(from, to));
    await new Promise(setImmediate);
  }
  source.destroy();
  await done;
  expect(passed).toEqual(['{"a":"ä"}\n', '{"b":2}\n', '{"c":3}\n', '{"d"\n']);
});

test('nothing more is read from a process while its lines cannot be written', async () => {
  const source = new PassThrough();
  let drained = () => {};
  const passed: string[] = [];
  const sink = {
    write: (text: string) => passed.push(text) > 1,
    once: (_event: 'drain', listener: () => void) => {
      drained = listener;
    },
  };
  const done = passOnLines(source, sink);
  source.write('one\n');
  await new Promise(setImmediate);
  source.write('two\n');
  await new Promise(setImmediate);
  expect(passed).toEqual(['one\n']);
  drained();
  await new Promise(setImmediate);
  expect(passed).toEqual(['one\n', 'two\n']);
  source.destroy();
  await done;
});

test('upkeep begins in the turn of the process, and a server whose turn never comes closes all the same', async () => {
  const turn = Promise.withResolvers<void>();
  const begun: string[] = [];
  const listening = async (upkeepTurn: Promise<void> | undefined, name: string) => {
    const app: HttpServer = fastify();
    app.decorate('upkeepTurn', upkeepTurn);
    const work = async () => void begun.push(name);
    whileListening(app, {
      upkeep: [{ what: 'the upkeep', every: 60_000, work }],
      begin: async () => void begun.push(`begin of ${name}`),
      end: () => void begun.push(`end of ${name}`),
    });
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app;
  };
  const alone = await listening(undefined, 'alone');
  const later = await listening(turn.promise, 'later');
  const never = await listening(Promise.withResolvers<void>().promise, 'never');
  await new Promise(setImmediate);
  expect(begun).toEqual(['begin of alone', 'alone']);
  turn.resolve();
  await expect.poll(() => begun.slice(2)).toEqual(['begin of later', 'later']);
  await Promise.all([alone.close(), later.close(), never.close()]);
  expect(begun.slice(4).sort()).toEqual(['end of alone', 'end of later', 'end of never']);
});
