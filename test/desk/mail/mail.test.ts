import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Mail } from '../../../src/desk/mail/mail-store.ts';
import { createMailQueue, type MailQueue } from '../../../src/desk/mail/service.ts';
import { createLogger } from '../../../src/http/logger.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { createTestDatabaseForThisTest, type TestDatabase } from '../../support/server/database.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startMailServer } from '../../support/vendor/mail-server.ts';

const never = new AbortController().signal;

const server = closeAfterAll(await startMailServer());

test('a mail arrives as it was queued, once, at a real server', async () => {
  const { database, queue } = await open();
  const mail = mailOf('<one@annals>', 'Agent „Ä“ disabled', 'Line one\nLine two: schön\n.\nafter a dot');
  await queueAll(database, queue, [mail, mail]);
  await queue.deliver(never, lookAtOnce(database.db));
  await queue.deliver(never, lookAtOnce(database.db));
  expect(server.received('<one@annals>')).toMatchObject([{ from: 'annals@shop.example', to: ['jane@shop.example'] }]);
  const [{ message = '' } = {}] = server.received('<one@annals>');
  expect(message).toMatch(/^From: Annals <annals@shop.example>\r$/m);
  expect(message).toMatch(/^To: jane@shop.example\r$/m);
  expect(message).toMatch(/^Auto-Submitted: auto-generated\r$/m);
  expect(message).toMatch(/^List-Unsubscribe: <mailto:annals@shop.example>\r$/m);
  expect(message).toContain('Line one');
});

test('a mail of a transaction that is rolled back is never sent', async () => {
  const { database, queue } = await open();
  const work = inTransaction(database.db, async (transaction) => {
    await queue.queueMail(transaction, mailOf('<rolled-back@annals>'));
    throw new Error('rolled back');
  });
  await expect(work).rejects.toThrow('rolled back');
  await queue.deliver(never, lookAtOnce(database.db));
  expect(server.received('<rolled-back@annals>')).toEqual([]);
});

test('while the mail server is down, or refuses, a mail waits; it arrives later, once, and does not block others', async () => {
  const { database, queue } = await open();
  await server.stop();
  await queueAll(database, queue, [mailOf('<down@annals>')]);
  await queue.deliver(never, lookAtOnce(database.db));
  await server.start();
  server.refuse('<later@annals>', 2);
  await queueAll(database, queue, [mailOf('<later@annals>'), mailOf('<other@annals>')]);
  await queue.deliver(never, lookAtOnce(database.db));
  expect(server.received('<other@annals>').length).toBe(1);
  expect(server.received('<down@annals>').length + server.received('<later@annals>').length).toBe(0);
  for (let round = 0; round < 4; round++) {
    await database.pool.query('update mail set due_at = now() where sent_at is null');
    await queue.deliver(never, lookAtOnce(database.db));
  }
  expect(server.received('<down@annals>').length).toBe(1);
  expect(server.received('<later@annals>').length).toBe(1);
  const { rows } = await database.pool.query("select attempts from mail where message_id = '<later@annals>'");
  expect(rows).toEqual([{ attempts: 2 }]);
});

test('a mail that is refused waits twice as long each time, and 15 minutes at most', async () => {
  const { database, queue } = await open();
  for (const [attempts, seconds] of [
    [0, 2],
    [3, 16],
    [8, 512],
    [9, 900],
    [30, 900],
  ] as const) {
    const id = `<pause-${attempts}@annals>`;
    server.refuse(id, 1);
    await queueAll(database, queue, [mailOf(id)]);
    await database.pool.query('update mail set attempts = $1 where message_id = $2', [attempts, id]);
    const { rows: before } = await database.pool.query<{ at: Date }>('select clock_timestamp() as at');
    await queue.deliver(never, lookAtOnce(database.db));
    const { rows } = await database.pool.query<{ pause: number; sending: number }>(
      `select extract(epoch from due_at - $1::timestamptz)::float8 as pause,
              extract(epoch from clock_timestamp() - $1::timestamptz)::float8 as sending
         from mail where message_id = $2`,
      [before[0]?.at, id],
    );
    expect(rows[0]?.pause).toBeGreaterThanOrEqual(seconds);
    expect(rows[0]?.pause).toBeLessThanOrEqual(seconds + (rows[0]?.sending ?? 0));
  }
});

test('a mail that cannot be recorded as sent is not sent', async () => {
  const { database, queue } = await open();
  await queueAll(database, queue, [mailOf('<unnoted@annals>')]);
  await database.pool.query(`create function refuse() returns trigger language plpgsql as $$ begin
      raise exception 'could not extend file: No space left on device' using errcode = '53100'; end $$;
    create trigger refuse before update on mail for each row execute function refuse()`);
  await expect(queue.deliver(never, lookAtOnce(database.db))).rejects.toThrow('No space left');
  expect(server.received('<unnoted@annals>')).toEqual([]);
  await database.pool.query('drop function refuse cascade');
  await queue.deliver(never, lookAtOnce(database.db));
  expect(server.received('<unnoted@annals>')).toHaveLength(1);
});

test('a mail that was sent is remembered for 30 days, so that it is not sent again', async () => {
  const { database, queue } = await open();
  const mail = mailOf('<remembered@annals>');
  await queueAll(database, queue, [mail]);
  await queue.deliver(never, lookAtOnce(database.db));
  const sentBefore = async (age: string) => {
    await database.pool.query('update mail set sent_at = now() - $1::interval', [age]);
    await queue.upkeep();
    await queueAll(database, queue, [mail]);
    await queue.deliver(never, lookAtOnce(database.db));
    return server.received('<remembered@annals>').length;
  };
  expect(await sentBefore('29 days 23 hours')).toBe(1);
  expect(await sentBefore('30 days 1 minute')).toBe(2);
});

test('a mail whose process died after the server accepted it and before that was recorded is sent again with its Message-ID', async () => {
  const { database, queue } = await open();
  await queueAll(database, queue, [mailOf('<killed@annals>')]);
  // The delivery is not recorded: the connection is lost after the mail was accepted.
  server.onceTaken('<killed@annals>', async () => {
    await database.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'",
    );
  });
  await expect(queue.deliver(never, lookAtOnce(database.db))).rejects.toThrow();
  await queue.deliver(never, lookAtOnce(database.db));
  expect(server.received('<killed@annals>').length).toBe(2);
});

test('without a mail server nothing is lost: mails wait, the operator is warned, and they are sent once there is one', async () => {
  const database = await createDatabase();
  const lines: string[] = [];
  const silent = createMailQueue({
    db: database.db,
    logger: createLogger('info', { write: (line) => void lines.push(line) }),
    mail: undefined,
  });
  await queueAll(database, silent, [mailOf('<unset@annals>')]);
  await silent.deliver(never, lookAtOnce(database.db));
  await silent.upkeep();
  expect(lines.join('')).toContain('set SMTP_URL and MAIL_FROM');
  expect(lines.join('')).not.toContain('jane@shop.example');
  await openQueue(database).deliver(never, lookAtOnce(database.db));
  expect(server.received('<unset@annals>').length).toBe(1);
});

test('a mail client that cannot be opened is a failed attempt of each mail; the next attempt opens a new one', async () => {
  const database = await createDatabase();
  await createTenant(database.db, 'other');
  const lines: string[] = [];
  // The settings take it as a URL, and nodemailer does not.
  const settings = { smtpUrl: 'smtp://%secret', from: 'Annals <annals@shop.example>' };
  const queue = createMailQueue({
    db: database.db,
    logger: createLogger('info', { write: (line) => void lines.push(line) }),
    mail: settings,
  });
  onTestFinished(() => queue.close());
  const ids = ['<unopened@annals>', '<unopened-too@annals>', '<unopened-of-other@annals>'] as const;
  const [first, second, foreign] = ids;
  await queueAll(database, queue, [mailOf(first), mailOf(second), { ...mailOf(foreign), tenant: 'other' }]);
  await queue.deliver(never, lookAtOnce(database.db));
  const { rows } = await database.pool.query(
    'select attempts, due_at > now() as later from mail where sent_at is null',
  );
  expect(rows).toEqual(ids.map(() => ({ attempts: 1, later: true })));
  expect(lines.length).toBe(ids.length);
  for (const line of lines) expect(line).toContain('ERR_INVALID_URL');
  expect(lines.join('')).not.toMatch(/secret|jane@shop\.example/);
  settings.smtpUrl = server.url;
  await database.pool.query('update mail set due_at = now()');
  await queue.deliver(never, lookAtOnce(database.db));
  for (const id of ids) expect(server.received(id).length, id).toBe(1);
});

test('a service sends what is queued while it serves', async () => {
  const service = await startTestServer({
    environment: { SMTP_URL: server.url, MAIL_FROM: 'Annals <annals@shop.example>' },
  });
  onTestFinished(() => service.close());
  await service.createTenant('shop');
  const { db, mail } = service.context;
  await inTransaction(db, (transaction) => mail.queueMail(transaction, mailOf('<served@annals>')));
  while (server.received('<served@annals>').length === 0) await sleep(20);
  expect(service.logLines.join('')).not.toContain('jane@shop.example');
});

async function createDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabaseForThisTest();
  await createTenant(database.db, 'shop');
  // Lost on purpose by one of the tests.
  database.pool.on('error', () => {});
  return database;
}

async function open(): Promise<{ database: TestDatabase; queue: MailQueue }> {
  const database = await createDatabase();
  return { database, queue: openQueue(database) };
}

function openQueue(database: TestDatabase): MailQueue {
  const queue = createMailQueue({
    db: database.db,
    logger: createLogger('silent'),
    mail: { smtpUrl: server.url, from: 'Annals <annals@shop.example>' },
  });
  onTestFinished(() => queue.close());
  return queue;
}

function mailOf(messageId: string, subject = 'Subject', text = 'Text'): Mail {
  return { tenant: 'shop', to: 'jane@shop.example', subject, text, messageId };
}

async function queueAll(database: TestDatabase, queue: MailQueue, mails: readonly Mail[]): Promise<void> {
  await inTransaction(database.db, async (transaction) => {
    for (const mail of mails) await queue.queueMail(transaction, mail);
  });
}
