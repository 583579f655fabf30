import { expect, test } from 'vitest';
import {
  maxBytesOfFirstPieces,
  maxBytesOfLongPieces,
  maxBytesUnderWay,
  readWithinBudget,
} from '../../../src/core/fairness/piece-budget.ts';
import { doWork } from '../../../src/core/fairness/work.ts';
import { Stop } from '../../../src/core/stop-signal.ts';
import { eventually } from '../../support/server/patience.ts';

const share = maxBytesUnderWay / 2;
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** An answer of a tenant, with the sizes of its pieces; `read` has the pieces that were read. */
function answer(tenant: string, sizes: readonly number[], signal = new Stop()) {
  const read: number[] = [];
  const pieces = readWithinBudget(
    sizes,
    (size) => size,
    async (size) => {
      read.push(size);
      return size;
    },
  );
  return { read, next: () => doWork({ tenant, signal }, () => pieces.next()), end: () => pieces.return(0) };
}

test('a tenant has half of the bytes; the next piece is read when its client has taken one, or has gone', async () => {
  const answers = [answer('acme', [share - 1, 1]), answer('acme', [1])];
  for (const { next } of answers) await next();
  const waiting = answer('acme', [1]);
  const third = waiting.next();
  await settled();
  expect(waiting.read).toEqual([]);
  const rival = answer('rival', [1]);
  expect((await rival.next()).value).toBe(1);
  await rival.end();
  await answers[1]?.end();
  expect((await third).value).toBe(1);
  // The long piece was taken: the next one of this answer needs a single byte.
  expect((await answers[0]?.next())?.value).toBe(1);
  await answers[0]?.end();
  await waiting.end();
});

test('a piece longer than any share goes alone, and an answer that waits ends with its request', async () => {
  const long = answer('acme', [10 * maxBytesUnderWay]);
  expect((await long.next()).value).toBe(10 * maxBytesUnderWay);
  const signal = new Stop();
  const waiting = answer('acme', [1], signal).next();
  await settled();
  signal.abort(new Error('gone'));
  await expect(waiting).rejects.toThrow('gone');
  await long.end();
});

test('a long piece counts with all of its bytes: the next long one waits for them, a short one does not', async () => {
  const rest = maxBytesOfLongPieces / 2;
  // Of the bytes for long pieces one is left.
  const slow = [answer('slow0', [share + rest]), answer('slow1', [share + rest - 1])];
  for (const { next } of slow) await next();
  const fitting = answer('acme', [share + 1]);
  expect((await fitting.next()).value).toBe(share + 1);
  const waiting = answer('rival', [share + 1]);
  const next = waiting.next();
  const short = answer('third', [share]);
  expect((await short.next()).value).toBe(share);
  expect(waiting.read).toEqual([]);
  await fitting.end();
  expect((await next).value).toBe(share + 1);
  for (const { end } of [...slow, waiting, short]) await end();
});

test('a tenant has half of the bytes for long pieces', async () => {
  const first = answer('acme', [share + maxBytesOfLongPieces / 2]);
  await first.next();
  const stop = new Stop();
  const second = answer('acme', [share + 1], stop).next();
  await settled();
  stop.abort(new Error('gone'));
  await expect(second).rejects.toThrow('gone');
  await first.end();
  const alone = answer('acme', [10 * maxBytesOfLongPieces]);
  expect((await alone.next()).value).toBe(10 * maxBytesOfLongPieces);
  await alone.end();
});

test('where others hold all bytes, a tenant without a piece has one at once, until the bytes for that are used up', async () => {
  const places = (maxBytesUnderWay + maxBytesOfFirstPieces) / share;
  const slow = Array.from({ length: places }, (_, number) => answer(`slow${number}`, [share]));
  for (const { next } of slow.slice(0, -1)) await next();
  const bystander = answer('bystander', [share - 1, 1]);
  expect((await bystander.next()).value).toBe(share - 1);
  // The tenant has one: the second piece waits as that of any other tenant.
  const second = answer('bystander', [1]);
  const waiting = second.next();
  const last = slow.at(-1)?.next();
  await settled();
  expect([second.read, slow.at(-1)?.read]).toEqual([[], []]);
  for (const { end } of [...slow.slice(0, -1), bystander]) await end();
  expect([(await waiting).value, (await last)?.value]).toEqual([1, share]);
  for (const { end } of [...slow.slice(-1), second]) await end();
});

test('one piece is read at a time, and tenants take turns; a piece that takes long makes way for the next one', async () => {
  const reads: { name: string; end: () => void }[] = [];
  const names = () => reads.map(({ name }) => name);
  const ask = (tenant: string, name: string) =>
    doWork({ tenant }, () =>
      readWithinBudget(
        [1],
        (size) => size,
        () => new Promise<string>((resolve) => reads.push({ name, end: () => resolve(name) })),
      ).next(),
    );
  const pieces = [ask('acme', 'a1'), ask('acme', 'a2'), ask('rival', 'r1')];
  await settled();
  expect(names()).toEqual(['a1']);
  reads[0]?.end();
  // Not yet a2, which came first: its tenant has had its turn.
  await eventually(names).toEqual(['a1', 'r1']);
  // Nothing ends r1, and the next piece is read all the same.
  await eventually(names).toEqual(['a1', 'r1', 'a2']);
  for (const { end } of reads) end();
  await Promise.all(pieces);
});
