import { expect, test } from 'vitest';
import { createWaitQueue, type FirstInQueue } from '../../../src/core/concurrency/wait-queue.ts';

const patient = new AbortController().signal;

test('callers get their turn in the order they came, one at a time', async () => {
  const queue = createWaitQueue();
  const order: number[] = [];
  const taken = [1, 2, 3].map(async (number) => {
    const turn = await queue.enter('acme', patient);
    order.push(number);
    return turn;
  });
  const first = await taken[0];
  expect(order).toEqual([1]);
  first?.leave();
  (await taken[1])?.leave();
  (await taken[2])?.leave();
  expect(order).toEqual([1, 2, 3]);
  expect(queue.busy('acme')).toBe(false);
});

test('a caller that gives up holds up no other, whether it is the first or not', async () => {
  const queue = createWaitQueue();
  const impatient = [new AbortController(), new AbortController()];
  const first = await queue.enter('acme', patient);
  const second = queue.enter('acme', impatient[0]?.signal ?? patient);
  const third = queue.enter('acme', impatient[1]?.signal ?? patient);
  const fourth = queue.enter('acme', patient);
  impatient[0]?.abort(new Error('gave up'));
  await expect(second).rejects.toThrow('gave up');
  first.leave();
  const turn: FirstInQueue = await third;
  const pause = turn.pause(60_000, impatient[1]?.signal ?? patient);
  impatient[1]?.abort(new Error('gave up too'));
  await expect(pause).rejects.toThrow('gave up too');
  turn.leave();
  (await fourth).leave();
  expect(queue.busy('acme')).toBe(false);
});

test('a caller whose signal is aborted already is refused', async () => {
  const queue = createWaitQueue();
  await expect(queue.enter('acme', AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
  expect(queue.busy('acme')).toBe(false);
});

test('a pause ends at once when something is given back, and a tenant does not wake another one', async () => {
  const queue = createWaitQueue();
  const turn = await queue.enter('acme', patient);
  let ended = false;
  const pause = turn.pause(60_000, patient).then(() => {
    ended = true;
  });
  queue.wake('rival');
  await Promise.resolve();
  expect(ended).toBe(false);
  queue.wake('acme');
  await pause;
  turn.leave();
});

test('a tenant does not wait for another one', async () => {
  const queue = createWaitQueue();
  const first = await queue.enter('acme', patient);
  (await queue.enter('rival', patient)).leave();
  first.leave();
});
