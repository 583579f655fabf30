import { expect, test } from 'vitest';
import { createTurns, type Turn } from '../../src/completions/turns.ts';

const patient = new AbortController().signal;

test('turns come in the order they were asked for, one at a time', async () => {
  const turns = createTurns();
  const order: number[] = [];
  const taken = [1, 2, 3].map(async (number) => {
    const turn = await turns.take('acme', patient);
    order.push(number);
    return turn;
  });
  const first = await taken[0];
  expect(order).toEqual([1]);
  first?.leave();
  (await taken[1])?.leave();
  (await taken[2])?.leave();
  expect(order).toEqual([1, 2, 3]);
  expect(turns.busy('acme')).toBe(false);
});

test('one who gives up holds up nobody, whether he has his turn or not', async () => {
  const turns = createTurns();
  const impatient = [new AbortController(), new AbortController()];
  const first = await turns.take('acme', patient);
  const second = turns.take('acme', impatient[0]?.signal ?? patient);
  const third = turns.take('acme', impatient[1]?.signal ?? patient);
  const fourth = turns.take('acme', patient);
  impatient[0]?.abort(new Error('gave up'));
  await expect(second).rejects.toThrow('gave up');
  first.leave();
  const turn: Turn = await third;
  const pause = turn.pause(60_000, impatient[1]?.signal ?? patient);
  impatient[1]?.abort(new Error('gave up too'));
  await expect(pause).rejects.toThrow('gave up too');
  turn.leave();
  (await fourth).leave();
  expect(turns.busy('acme')).toBe(false);
});

test('one who comes with an aborted signal gets no turn', async () => {
  const turns = createTurns();
  await expect(turns.take('acme', AbortSignal.abort(new Error('too late')))).rejects.toThrow('too late');
  expect(turns.busy('acme')).toBe(false);
});

test('a pause ends at once when something is given back, and the tenants do not wake each other', async () => {
  const turns = createTurns();
  const turn = await turns.take('acme', patient);
  let ended = false;
  const pause = turn.pause(60_000, patient).then(() => {
    ended = true;
  });
  turns.wake('rival');
  await Promise.resolve();
  expect(ended).toBe(false);
  turns.wake('acme');
  await pause;
  turn.leave();
});

test('tenants do not wait for one another', async () => {
  const turns = createTurns();
  const first = await turns.take('acme', patient);
  (await turns.take('rival', patient)).leave();
  first.leave();
});
