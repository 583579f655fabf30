import { expect, test } from 'vitest';
import { type Batch, createLedger } from '../../src/completions/quota-ledger.ts';
import type { Decision, Want } from '../../src/completions/quota-store.ts';
import { eventually } from '../support/server/patience.ts';

/** A database whose every answer the test gives by hand. */
function handWorked() {
  const applied: { tenant: string; batch: Batch; answer: PromiseWithResolvers<Decision[]> }[] = [];
  const flushed: PromiseWithResolvers<void>[] = [];
  const ledger = createLedger({
    apply(tenant, batch) {
      const answer = Promise.withResolvers<Decision[]>();
      applied.push({ tenant, batch, answer });
      return answer.promise;
    },
    makeDurable() {
      const answer = Promise.withResolvers<void>();
      flushed.push(answer);
      return answer.promise;
    },
  });
  return { ledger, applied, flushed };
}

const want = (reservation: string): Want => ({ reservation, inputBound: 1, outputCap: 16, lease: 1 });
const reserved: Decision = { outcome: 'reserved', granted: 16 };

test('a tenant has one batch under way, and the next takes along all that came meanwhile', async () => {
  const { ledger, applied } = handWorked();
  const calls = ['a', 'b', 'c'].map((name) => ledger.reserve('acme', want(name)));
  void ledger.settle('acme', { reservation: 'x', input: 1, output: 1 });
  void ledger.reserve('rival', want('r'));
  expect(applied.map(({ tenant, batch }) => [tenant, batch.wants.length])).toEqual([
    ['acme', 1],
    ['rival', 1],
  ]);
  applied[0]?.answer.resolve([{ outcome: 'wait' }]);
  expect(await calls[0]).toEqual({ outcome: 'wait' });
  expect(applied[2]?.batch.wants.map(({ reservation }) => reservation)).toEqual(['b', 'c']);
  expect(applied[2]?.batch.settlements.map(({ reservation }) => reservation)).toEqual(['x']);
});

test('a reservation is told only when it is durable, and the next batch does not wait for that', async () => {
  const { ledger, applied, flushed } = handWorked();
  let told = false;
  const call = ledger.reserve('acme', want('a')).then(() => {
    told = true;
  });
  applied[0]?.answer.resolve([reserved]);
  await eventually(() => flushed.length).toBe(1);
  expect(told).toBe(false);
  void ledger.reserve('acme', want('b'));
  expect(applied).toHaveLength(2);
  flushed[0]?.resolve();
  await call;
});

test('what is applied while the disk is busy is durable with the run after, never with the one under way', async () => {
  const { ledger, applied, flushed } = handWorked();
  const first = ledger.reserve('acme', want('a'));
  applied[0]?.answer.resolve([reserved]);
  await eventually(() => flushed.length).toBe(1);
  let told = 0;
  const others = ['b', 'c'].map((name, index) => {
    const call = ledger.reserve(`tenant${index}`, want(name)).then(() => {
      told += 1;
    });
    applied.at(-1)?.answer.resolve([reserved]);
    return call;
  });
  flushed[0]?.resolve();
  await first;
  await eventually(() => flushed.length).toBe(2);
  expect(told).toBe(0);
  flushed[1]?.resolve();
  await Promise.all(others);
  expect(flushed).toHaveLength(2);
});

test('a reservation that cannot be made durable is none, and so is one whose batch fails', async () => {
  const { ledger, applied, flushed } = handWorked();
  const call = ledger.reserve('acme', want('a'));
  applied[0]?.answer.resolve([reserved]);
  await eventually(() => flushed.length).toBe(1);
  flushed[0]?.reject(new Error('the disk is full'));
  await expect(call).rejects.toThrow('the disk is full');

  const second = ledger.reserve('acme', want('b'));
  const third = ledger.reserve('acme', want('c'));
  applied[1]?.answer.reject(new Error('away'));
  await expect(second).rejects.toThrow('away');
  applied[2]?.answer.resolve([{ outcome: 'exceeded' }]);
  expect(await third).toEqual({ outcome: 'exceeded' });
});
