import { expect, test } from 'vitest';
import { createLedger } from '../../../src/desk/completions/quota-ledger.ts';
import type {
  Decision,
  LedgerBatch,
  LedgerRequest,
  LedgerSendRequest,
  Sending,
} from '../../../src/desk/completions/quota-store.ts';
import { eventually } from '../../support/server/patience.ts';

/** A database whose answers the test controls. */
function handWorked() {
  const applied: { tenant: string; batch: LedgerBatch; answer: PromiseWithResolvers<Decision[]> }[] = [];
  const sent: { tenant: string; sendings: readonly Sending[]; answer: PromiseWithResolvers<boolean[]> }[] = [];
  const left: { want: LedgerSendRequest; answer: PromiseWithResolvers<boolean> }[] = [];
  const ledger = createLedger({
    apply(tenant, batch) {
      const answer = Promise.withResolvers<Decision[]>();
      applied.push({ tenant, batch, answer });
      return answer.promise;
    },
    reserveSent(_tenant, one) {
      const answer = Promise.withResolvers<boolean>();
      left.push({ want: one, answer });
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
  return { ledger, applied, sent, left };
}

const want = (reservation: string): LedgerRequest => ({
  reservation,
  inputBound: 1,
  isBounded: true,
  outputCap: 16,
  begun: {},
});
const leaving = (reservation: string): LedgerSendRequest => ({ ...want(reservation), lease: 1 });
const sending = (reservation: string): Sending => ({ reservation, lease: 1 });
const reserved: Decision = { outcome: 'reserved', granted: 16 };

test('a tenant has one batch under way, and the next takes along all that arrived until then', async () => {
  const { ledger, applied } = handWorked();
  const calls = ['a', 'b', 'c'].map((name) => ledger.reserve('acme', want(name)));
  void ledger.settle('acme', { reservation: 'x', input: 1, output: 1, record: undefined });
  void ledger.reserve('rival', want('r'));
  expect(applied.map(({ tenant, batch }) => [tenant, batch.requests.length])).toEqual([
    ['acme', 1],
    ['rival', 1],
  ]);
  applied[0]?.answer.resolve([{ outcome: 'wait', budget: undefined }]);
  expect(await calls[0]).toEqual({ outcome: 'wait', budget: undefined });
  expect(applied[2]?.batch.requests.map(({ reservation }) => reservation)).toEqual(['b', 'c']);
  expect(applied[2]?.batch.settlements.map(({ reservation }) => reservation)).toEqual(['x']);
});

test('changes do not wait for what is being sent, and what arrives until then is sent together', async () => {
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

test('a reservation that is made when its call leaves is one step where it is alone', async () => {
  const { ledger, applied, sent, left } = handWorked();
  const calls = ['a', 'b'].map((name) => ledger.reserveSent('acme', leaving(name)));
  expect(left.map(({ want: { reservation } }) => reservation)).toEqual(['a']);
  left[0]?.answer.resolve(true);
  expect(await calls[0]).toBe(true);
  left[1]?.answer.resolve(false);
  expect(await calls[1]).toBe(false);
  expect([applied, sent]).toEqual([[], []]);
});

test.each([
  ['reserved whole, and sent', reserved, [true], true, []],
  ['reserved whole, and not sent', reserved, [false], false, ['b']],
  ['reserved in part', { ...reserved, granted: 15 }, [], false, ['b']],
  ['refused', { outcome: 'exceeded' }, [], false, []],
  ['to wait', { outcome: 'wait', budget: undefined }, [], false, []],
] as const)(
  'beside others it is reserved with them and then sent; what does not leave is given back: %s',
  async (...row) => {
    const [, decision, answers, leaves, returned] = row;
    const { ledger, applied, sent, left } = handWorked();
    void ledger.reserveSent('acme', leaving('a'));
    const calls = [ledger.reserveSent('acme', leaving('b')), ledger.reserve('acme', want('c'))];
    left[0]?.answer.resolve(true);
    await eventually(() => applied[0]?.batch.requests.map(({ reservation }) => reservation)).toEqual(['b', 'c']);
    applied[0]?.answer.resolve([decision, { outcome: 'exceeded' }]);
    if (answers.length > 0) {
      await eventually(() => sent[0]?.sendings).toMatchObject([{ reservation: 'b', lease: 1 }]);
      sent[0]?.answer.resolve([...answers]);
    }
    if (returned.length > 0) {
      await eventually(() => applied[1]?.batch.settlements.map(({ reservation }) => reservation)).toEqual(returned);
      expect(applied[1]?.batch.settlements).toMatchObject([{ input: 0, output: 0, record: undefined }]);
      applied[1]?.answer.resolve([]);
    }
    expect(await Promise.all(calls)).toEqual([leaves, { outcome: 'exceeded' }]);
    expect(applied).toHaveLength(1 + returned.length);
  },
);
