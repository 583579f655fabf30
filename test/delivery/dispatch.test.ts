import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { verifyWebhook } from '@annals/client';
import { expect, onTestFinished, test } from 'vitest';
import { deleteExpired } from '../../src/delivery/dispatch/upkeep.ts';
import { maxAttempts, recordAttempts } from '../../src/delivery/subscriptions/attempt-store.ts';
import { inTransaction } from '../../src/postgres/transaction.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { eventually } from '../support/server/patience.ts';
import { startTestServer } from '../support/server/server.ts';
import { passTime, recordUpdates, subscriptionsOf } from '../support/server/subscriptions.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startReceiver } from '../support/vendor/receiver.ts';

const server = closeAfterAll(
  await startTestServer({ environment: { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8,doomed=127.0.0.0/8' } }),
);
const acme = subscriptionsOf(server, 'acme', await server.token('acme'));
const receiver = closeAfterAll(await startReceiver());

const webhook = (more: object = {}) => ({ type: 'webhook', url: receiver.url, ...more });
const rowsOf = async (table: string, id: string) =>
  (await server.database.pool.query(`select count(*)::integer as n from ${table} where subscription = $1`, [id]))
    .rows[0].n;

test('a delivery that Ed25519 signs is checked by openssl, and by the client', async () => {
  const { id, publicKey } = await acme.make({ q: 'entity:product', target: webhook({ signing: 'ed25519' }) });
  await recordUpdates(server, 'acme', ['signed']);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 1 });
  const [one] = receiver.received.splice(0);
  if (one === undefined) throw new Error('nothing came');
  expect((await verifyWebhook(one.body, one.headers, publicKey)).text).toBe(one.body);
  const folder = temporaryFolder();
  const file = (name: string, bytes: Buffer | string) => {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  };
  const point = Buffer.from(publicKey.slice('whpk_'.length), 'base64');
  const key = file('key.der', Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), point]));
  const signature = file(
    'signature',
    Buffer.from(String(one.headers['webhook-signature']).slice('v1a,'.length), 'base64'),
  );
  const content = file('content', `${one.headers['webhook-id']}.${one.headers['webhook-timestamp']}.${one.body}`);
  const verify = [
    'pkeyutl',
    '-verify',
    '-pubin',
    '-inkey',
    key,
    '-keyform',
    'DER',
    '-rawin',
    '-in',
    content,
    '-sigfile',
    signature,
  ];
  expect(execFileSync('openssl', verify).toString()).toContain('Signature Verified Successfully');
  await acme.call('DELETE', `/${id}`);
});

test('attempts are kept for 7 days and 10,000 of a subscription, and what is parked for 30 days', async () => {
  const { id } = await acme.make({ q: 'entity:product', target: webhook() });
  const { db, database } = { db: server.context.db, database: server.database };
  const attempts = Array.from(
    { length: 1_000 },
    () => ({ kind: 'live', at: Date.now(), result: { outcome: 'failed' } }) as const,
  );
  for (let n = 0; n < maxAttempts / 1_000; n += 1) {
    await inTransaction(db, (transaction) => recordAttempts(transaction, 'acme', id, attempts));
  }
  expect(await rowsOf('delivery_attempt', id)).toBe(maxAttempts);
  await inTransaction(db, (transaction) => recordAttempts(transaction, 'acme', id, attempts.slice(0, 5)));
  expect(await rowsOf('delivery_attempt', id)).toBe(maxAttempts);
  const old = (days: string) =>
    database.pool.query(
      `update delivery_attempt set at = statement_timestamp() - $2::interval where subscription = $1 and number > 10000`,
      [id, days],
    );
  await old('6 days 23 hours');
  await deleteExpired(db);
  expect(await rowsOf('delivery_attempt', id)).toBe(maxAttempts);
  await old('7 days 1 minute');
  await deleteExpired(db);
  expect(await rowsOf('delivery_attempt', id)).toBe(maxAttempts - 5);

  await database.pool.query(
    `insert into delivery_waiting (tenant, subscription, position, fingerprint, document, attempts, due_at, parked_at)
       select 'acme', $1, n, 1, gen_random_uuid(), 11, now(), now() - make_interval(days => 29 + n) from generate_series(0, 3) n`,
    [id],
  );
  await database.pool.query('update subscription_state set parked = 4, matched = 4 where subscription = $1', [id]);
  await deleteExpired(db);
  expect(await acme.counts(id)).toMatchObject({ matched: 4, parked: 1, dropped: 3, isWhole: true });
  await acme.call('DELETE', `/${id}/parked`);
  expect(await acme.counts(id)).toMatchObject({ matched: 4, parked: 0, dropped: 4, isWhole: true });
  await acme.call('DELETE', `/${id}`);
  expect(await rowsOf('delivery_attempt', id)).toBe(0);
});

test('a waiting change whose entry is gone is counted as dropped, and its document continues', async () => {
  receiver.answer = (_received, response) => void response.writeHead(500).end();
  const { id } = await acme.make({ q: 'entity:product', target: webhook() });
  await recordUpdates(server, 'acme', ['gone', 'gone'], { at: Date.now() - 1_000 });
  await eventually(() => acme.counts(id)).toMatchObject({ pending: 2, isWhole: true });
  const { rows } = await server.database.pool.query(
    'select min(position)::integer as first from delivery_waiting where subscription = $1',
    [id],
  );
  await server.database.pool.query(
    `delete from change_entry e using (
       select p.ats[$1 - p.first + 1] as at, p.sequences[$1 - p.first + 1] as sequence from change_position p
         where p.tenant = 'acme' and p.first <= $1 order by p.first desc limit 1) one
       where e.tenant = 'acme' and e.at = one.at and e.sequence = one.sequence`,
    [rows[0].first],
  );
  receiver.answer = (_received, response) => void response.writeHead(204).end();
  await passTime(server, id, 60_000);
  await eventually(() => acme.counts(id)).toMatchObject({
    matched: 2,
    delivered: 1,
    dropped: 1,
    pending: 0,
    isWhole: true,
  });
  await acme.call('DELETE', `/${id}`);
});

test('where the progress cannot be saved, the same changes go out after pauses that grow', {
  timeout: 120_000,
}, async () => {
  const { pool } = server.database;
  await pool.query(`create function refuse() returns trigger language plpgsql as $$ begin
      raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
    create trigger refuse before insert on delivery_attempt for each row execute function refuse()`);
  onTestFinished(async () => void (await pool.query('drop function if exists refuse cascade')));
  const times: number[] = [];
  receiver.answer = (_received, response) => {
    times.push(performance.now());
    response.writeHead(204).end();
  };
  const { id } = await acme.make({ q: 'entity:product', target: webhook() });
  await recordUpdates(server, 'acme', ['unsaved']);
  await expect.poll(() => times.length, { timeout: 50_000 }).toBe(3);
  const [first = 0, second = 0, third = 0] = times;
  // A slow machine makes both longer.
  expect(second - first).toBeGreaterThan(4_900);
  expect(third - second).toBeGreaterThan(9_900);
  await acme.call('DELETE', `/${id}`);
});
