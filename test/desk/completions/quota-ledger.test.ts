import { expect, test } from 'vitest';
import { createLedger } from '../../../src/desk/completions/quota-ledger.ts';
import type { Decision, LedgerBatch, Sending, Want } from '../../../src/desk/completions/quota-store.ts';

/** A database whose every answer the test gives by hand. */
function handWorked() {
  const applied: { tenant: string; batch: LedgerBatch; answer: PromiseWithResolvers<Decision[]> }[] = [];
  const sent: { tenant: string; sendings: readonly Sending[]; answer: PromiseWithResolvers<boolean[]> }[] = [];
  const ledger = createLedger({
    apply(tenant, batch) {
      const answer = Promise.withResolvers<Decision[]>();
      applied.push({ tenant, batch, answer });
      return answer.promise;
    },
    hasBudgets: () => Promise.resolve(false),
    write: () => Promise.resolve(),
    send(tenant, sendings) {
      const answer = Promise.withResolvers<boolean[]>();
      sent.push({ tenant, sendings, answer });
      return answer.promise;
    },
  });
  return { ledger, applied, sent };
}

const want = (reservation: string): Want => ({ reservation, inputBound: 1, isBounded: true, outputCap: 16, begun: {} });
const sending = (reservation: string): Sending => ({ reservation, lease: 1 });
const reserved: Decision = { outcome: 'reserved', granted: 16 };

test('a tenant has one batch under way, and the next takes along all that came meanwhile', async () => {
  const { ledger, applied } = handWorked();
  const calls = ['a', 'b', 'c'].map((name) => ledger.reserve('acme', want(name)));
  void ledger.settle('acme', { reservation: 'x', input: 1, output: 1, record: undefined });
  void ledger.reserve('rival', want('r'));
  expect(applied.map(({ tenant, batch }) => [tenant, batch.wants.length])).toEqual([
    ['acme', 1],
    ['rival', 1],
  ]);
  applied[0]?.answer.resolve([{ outcome: 'wait', budget: undefined }]);
  expect(await calls[0]).toEqual({ outcome: 'wait', budget: undefined });
  expect(applied[2]?.batch.wants.map(({ reservation }) => reservation)).toEqual(['b', 'c']);
  expect(applied[2]?.batch.settlements.map(({ reservation }) => reservation)).toEqual(['x']);
});

test('changes do not wait for what is being sent, and what comes meanwhile is sent together', async () => {
  const { ledger, applied, sent } = handWorked();
  const first = ledger.send('acme', sending('a'));
  const others = ['b', 'c'].map((name) => ledger.send('acme', sending(name)));
  void ledger.send('rival', sending('r'));
  expect(sent.map(({ tenant, sendings }) => [tenant, sendings.length])).toEqual([
    ['acme', 1],
    ['rival', 1],
  ]);
  const change = ledger.reserve('acme', want('d'));
  applied[0]?.answer.resolve([reserved]);
  expect(await change).toEqual(reserved);
  sent[0]?.answer.resolve([true]);
  expect(await first).toBe(true);
  expect(sent[2]?.sendings.map(({ reservation }) => reservation)).toEqual(['b', 'c']);
  sent[2]?.answer.resolve([false, true]);
  expect(await Promise.all(others)).toEqual([false, true]);
});

test('what cannot be made durable is not sent, and a batch that fails takes no later one along', async () => {
  const { ledger, applied, sent } = handWorked();
  const call = ledger.send('acme', sending('a'));
  sent[0]?.answer.reject(new Error('the disk is full'));
  await expect(call).rejects.toThrow('the disk is full');

  const second = ledger.reserve('acme', want('b'));
  const third = ledger.reserve('acme', want('c'));
  applied[0]?.answer.reject(new Error('away'));
  await expect(second).rejects.toThrow('away');
  applied[1]?.answer.resolve([{ outcome: 'exceeded' }]);
  expect(await third).toEqual({ outcome: 'exceeded' });
});
