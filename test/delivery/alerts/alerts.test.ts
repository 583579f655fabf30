import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { recordUpdates, subscriptionsOf } from '../../support/server/subscriptions.ts';
import { type MailServer, startMailServer } from '../../support/vendor/mail-server.ts';

const minute = 60_000;

let mails: MailServer;
let server: TestServer;
let acme: ReturnType<typeof subscriptionsOf>;
let ahead = 0;

beforeAll(async () => {
  mails = await startMailServer();
  server = await startTestServer({
    environment: {
      SMTP_URL: mails.url,
      MAIL_FROM: 'Annals <annals@shop.example>',
      ANNALS_BASE_URL: 'https://history.example/annals',
    },
    clock: { now: () => Date.now() + ahead },
  });
  acme = subscriptionsOf(server, 'acme', await server.token('acme'));
});

afterAll(async () => {
  await server.close();
  await mails.close();
});

/** The texts of the mails to an address, as a reader sees them. */
function mailsTo(address: string): string[] {
  return mails
    .all()
    .filter(({ to }) => to.includes(address))
    .map(({ message }) => message.replaceAll('\r\n', '\n'))
    .map((message) => decodeQuoted(message));
}

/** Quoted-printable, which a mail with long lines comes in. */
function decodeQuoted(message: string): string {
  if (!/^content-transfer-encoding: quoted-printable$/im.test(message)) return message;
  const [head = '', ...body] = message.split('\n\n');
  const bytes = body
    .join('\n\n')
    .replaceAll('=\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return `${head}\n\n${Buffer.from(bytes, 'latin1').toString('utf8')}`;
}

async function make(to: string, members: object = {}): Promise<string> {
  return (await acme.make({ name: 'Too many', q: 'entity:product', target: { type: 'email', to, ...members } })).id;
}

async function record(count: number, prefix: string): Promise<void> {
  await recordUpdates(
    server,
    'acme',
    Array.from({ length: count }, (_none, index) => `${prefix}-${index}`),
  );
}

test('an e-mail tells of so many changes in so many minutes: not before, the first five of them, without values', async () => {
  const id = await make('jane@shop.example', { threshold: { count: 7, minutes: 5 } });
  await record(6, 'few');
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 6, delivered: 6, isWhole: true });
  expect(mailsTo('jane@shop.example')).toEqual([]);
  await record(1, 'last');
  await eventually(() => mailsTo('jane@shop.example').length).toBe(1);
  const [mail = ''] = mailsTo('jane@shop.example');
  expect(mail).toContain('7 changes of the tenant acme matched the alert "Too many"');
  expect(mail).toContain('Content-Type: text/plain');
  expect(mail.match(/^- .* update product few-\d, by /gm)).toHaveLength(5);
  expect(mail).toMatch(/https:\/\/history\.example\/annals\/console\/history\?q=entity%3Aproduct/);
  expect(mail).not.toContain('1.10');
  await acme.call('DELETE', `/${id}`);
});

test('a rule sends one e-mail in 10 minutes, which counts all changes since the last one; values where they are wanted', async () => {
  const to = 'joe@shop.example';
  const id = await make(to, { values: true });
  await record(1, 'first');
  await eventually(() => mailsTo(to).length).toBe(1);
  expect(mailsTo(to)[0]).toContain('n: 1.10 → 1.20');
  await record(2, 'second');
  await record(1, 'third');
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 4 });
  const due = server.context.db.selectFrom('subscription_state').select('due_at').where('subscription', '=', id);
  await eventually(async () => (await due.executeTakeFirst())?.due_at?.getTime() ?? 0).toBeGreaterThan(
    Date.now() + 5 * minute,
  );
  expect(mailsTo(to)).toHaveLength(1);
  ahead = 10 * minute;
  await server.database.pool.query('update subscription_state set due_at = now() where subscription = $1', [id]);
  await eventually(() => mailsTo(to).length).toBe(2);
  expect(mailsTo(to)[1]).toContain('3 changes');
  ahead = 0;
  await acme.call('DELETE', `/${id}`);
});

test('a sample says that it is one, and an alert sends nothing once more', async () => {
  const id = await make('jim@shop.example');
  expect(await acme.call('POST', `/${id}/test`)).toMatchObject({ status: 200, body: { outcome: 'delivered' } });
  await eventually(() => mailsTo('jim@shop.example').length).toBe(1);
  expect(mailsTo('jim@shop.example')[0]).toContain('This is a sample.');
  expect(await acme.call('POST', `/${id}/replay`, { from: 'start' })).toMatchObject({ status: 409 });
  await acme.call('DELETE', `/${id}`);
});
