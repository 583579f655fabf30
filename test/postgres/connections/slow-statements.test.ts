import { afterEach, expect, test, vi } from 'vitest';
import { Stop } from '../../../src/core/stop-signal.ts';
import { maxSlowStatements, SlowStatements, slowFrom } from '../../../src/postgres/connections/slow-statements.ts';

afterEach(() => vi.restoreAllMocks());

/** Statements whose duration the test sets, and which of them run. */
function statements(places?: number) {
  let clock = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => clock);
  const slow = new SlowStatements(places);
  const running = new Map<string, () => void>();
  /** Sends a statement under a name; it runs until `end`. */
  const send = (tenant: string, text: string, name = `${tenant} ${text}`, signal = new Stop()) =>
    slow.run(tenant, text, signal, () => new Promise<void>((resolve) => running.set(name, resolve)));
  const end = (name: string) => {
    running.get(name)?.();
    running.delete(name);
  };
  const take = async (tenant: string, text: string, milliseconds: number) => {
    const done = send(tenant, text);
    await settled();
    clock += milliseconds;
    end(`${tenant} ${text}`);
    await done;
  };
  return { send, end, take, names: () => [...running.keys()], pass: (time: number) => (clock += time) };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a tenant whose statements are quick sends as many as it likes', async () => {
  const { send, take, names } = statements();
  await take('acme', 'list', slowFrom - 1);
  for (let number = 0; number < 20; number += 1) void send('acme', 'list', `list ${number}`);
  await settled();
  expect(names()).toHaveLength(20);
});

test('after a slow statement a tenant has half of the places for all that was not quick the last time', async () => {
  const { send, end, take, names } = statements();
  await take('acme', 'sort', slowFrom);
  await take('acme', 'page', 1);
  for (const text of ['sort', 'other', 'third']) void send('acme', text);
  for (const text of ['begin', 'start transaction', 'set local a = 1', 'commit', 'page']) void send('acme', text);
  await settled();
  const quick = ['acme begin', 'acme start transaction', 'acme set local a = 1', 'acme commit', 'acme page'];
  expect(names().toSorted()).toEqual([...quick, 'acme sort', 'acme other'].toSorted());
  expect(maxSlowStatements / 2).toBe(2);
  end('acme sort');
  await settled();
  expect(names()).toContain('acme third');
});

test('a tenant without a slow statement has one at once, and an aborted one leaves the queue', async () => {
  const { send, end, take, names } = statements();
  for (const tenant of ['a', 'b', 'c']) await take(tenant, 'sort', slowFrom);
  for (const tenant of ['a', 'b', 'c']) for (const text of ['sort', 'more']) void send(tenant, text);
  await settled();
  expect(names()).toEqual(['a sort', 'a more', 'b sort', 'c sort']);
  void send('bystander', 'sort');
  await settled();
  expect(names()).toContain('bystander sort');
  const stop = new Stop();
  const waiting = send('b', 'third', 'b third', stop);
  stop.abort(new Error('the client has gone'));
  await expect(waiting).rejects.toThrow('the client has gone');
  end('a sort');
  await settled();
  expect(names()).not.toContain('b third');
});

test('ten seconds after its last slow statement a tenant sends as before', async () => {
  const { send, take, names, pass } = statements();
  await take('acme', 'sort', slowFrom);
  pass(9_999);
  for (const text of ['one', 'two', 'three']) void send('acme', text);
  await settled();
  expect(names()).toHaveLength(2);
  pass(1);
  void send('acme', 'four');
  await settled();
  expect(names()).toContain('acme four');
});
