import { expect, test } from 'vitest';
import { alertMessageIds, alertOfMessage } from '../../../src/delivery/alerts/alert-attempts.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { recordUpdates, subscriptionsOf } from '../../support/server/subscriptions.ts';
import { startMailServer } from '../../support/vendor/mail-server.ts';

const minute = 60_000;

let ahead = 0;

const mails = closeAfterAll(await startMailServer());
const server = closeAfterAll(
  await startTestServer({
    environment: {
      SMTP_URL: mails.url,
      MAIL_FROM: 'Annals <annals@shop.example>',
      ANNALS_BASE_URL: 'https://history.example/annals',
    },
    clock: { now: () => Date.now() + ahead },
  }),
);
const acme = subscriptionsOf(server, 'acme', await server.token('acme'));

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

async function make(to: string | string[], members: object = {}): Promise<string> {
  return (await acme.make({ name: 'Too many', q: 'entity:product', target: { type: 'email', to, ...members } })).id;
}

async function record(count: number, prefix: string): Promise<void> {
  await recordUpdates(
    server,
    'acme',
    Array.from({ length: count }, (_none, index) => `${prefix}-${index}`),
  );
}

test('an e-mail is sent once the threshold is reached and not before, with the first five changes, without values', async () => {
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

test('a rule sends one e-mail per 10 minutes, which counts all changes since the last; with values if enabled', async () => {
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
  // On a slow machine a look from before the ten minutes may set the time again.
  await eventually(async () => {
    await server.database.pool.query('update subscription_state set due_at = now() where subscription = $1', [id]);
    return mailsTo(to).length;
  }).toBe(2);
  expect(mailsTo(to)[1]).toContain('3 changes');
  ahead = 0;
  await acme.call('DELETE', `/${id}`);
});

test('a sample reports what the mail server did with it, without its text, and is not sent again', async () => {
  const to = 'away@shop.example';
  const waiting = async () =>
    (await server.database.pool.query('select from mail where recipient = $1', [to])).rowCount;
  const id = await make(to);
  mails.refuseRecipient(to, `5.1.1 <${to}> unknown; relay user svc, password hunter2`);
  expect((await acme.call('POST', `/${id}/test`)).body).toEqual({
    outcome: 'failed',
    status: 550,
    error: 'The mail server refused the e-mail.',
  });
  await mails.stop();
  expect((await acme.call('POST', `/${id}/test`)).body).toEqual({
    outcome: 'refused',
    error: 'The e-mail could not be handed to the mail server.',
  });
  await mails.start();
  mails.refuseRecipient(to, undefined);
  expect(await waiting()).toBe(0);
  expect(mailsTo(to)).toEqual([]);
  expect(await attemptsOf(id)).toMatchObject([
    { kind: 'test', outcome: 'failed', status: 550 },
    { kind: 'test', outcome: 'refused' },
  ]);
  // Samples say nothing about the health of the alert.
  expect(await acme.get(id)).toMatchObject({ state: 'active' });
  expect((await acme.call('POST', `/${id}/test`)).body).toEqual({ outcome: 'delivered' });
  expect(mailsTo(to)).toHaveLength(1);
  await acme.call('DELETE', `/${id}`);
});

/** Has the waiting mails to an address sent at once. */
async function sendAgain(to: string): Promise<void> {
  await server.database.pool.query('update mail set due_at = now() where recipient = $1 and sent_at is null', [to]);
}

/** The oldest first. */
async function attemptsOf(id: string): Promise<unknown[]> {
  const { body } = await acme.call<{ id: string }[]>('GET', `/${id}/attempts`);
  return body.toSorted((one, other) => Number(one.id) - Number(other.id));
}

test('an e-mail that is refused makes its alert fail as a webhook does, without the text of the server; taken, it is healthy again', async () => {
  const to = 'gone@shop.example';
  mails.refuseRecipient(to, `5.1.1 <${to}> unknown; relay user svc, password hunter2`);
  const id = await make(to);
  const healthy = await make('here@shop.example');
  expect(await acme.get(id)).not.toHaveProperty('lastError');
  await record(1, 'refused');
  await eventually(async () => (await acme.get(id)).state).toBe('retrying');
  const failing = await acme.get(id);
  expect(failing.lastError).toEqual({
    at: expect.any(String),
    status: 550,
    message: 'The mail server refused the e-mail.',
  });
  expect(failing).not.toHaveProperty('lastDelivery');
  const attempts = await attemptsOf(id);
  expect(attempts[0]).toMatchObject({ kind: 'live', outcome: 'failed', status: 550 });
  expect(JSON.stringify([failing.lastError, attempts])).not.toMatch(/hunter2|gone@/);
  await eventually(() => acme.get(healthy)).toMatchObject({ state: 'active', lastDelivery: {} });
  expect(await acme.get(healthy)).not.toHaveProperty('lastError');
  expect(await attemptsOf(healthy)).toMatchObject([{ kind: 'live', outcome: 'delivered' }]);

  mails.refuseRecipient(to, undefined);
  await sendAgain(to);
  await eventually(() => acme.get(id)).toMatchObject({ state: 'active', lastDelivery: {}, lastError: { status: 550 } });
  expect((await attemptsOf(id)).at(-1)).toMatchObject({ kind: 'live', outcome: 'delivered' });
  expect(mailsTo(to)).toHaveLength(1);
  for (const made of [id, healthy]) await acme.call('DELETE', `/${made}`);
});

test('an alert whose e-mails were refused for 5 days is suspended, and not before; the e-mail is still sent later', async () => {
  const to = 'full@shop.example';
  mails.refuseRecipient(to, 'no such user');
  const id = await make(to);
  await record(1, 'suspended');
  await eventually(async () => (await acme.get(id)).state).toBe('retrying');
  const failingFor = async (age: string) => {
    await server.database.pool.query(
      'update subscription_state set failing_since = now() - $2::interval where subscription = $1',
      [id, age],
    );
    const before = (await attemptsOf(id)).length;
    await sendAgain(to);
    await eventually(async () => (await attemptsOf(id)).length).toBeGreaterThan(before);
    return await acme.get(id);
  };
  expect((await failingFor('4 days 23 hours')).state).toBe('retrying');
  expect(await failingFor('5 days 1 minute')).toMatchObject({ state: 'suspended', reason: 'failures' });
  mails.refuseRecipient(to, undefined);
  await sendAgain(to);
  await eventually(() => mailsTo(to).length).toBe(1);
  await eventually(() => acme.get(id)).toMatchObject({ state: 'suspended', lastDelivery: {} });
  expect(await acme.call('POST', `/${id}/resume`)).toMatchObject({ status: 204 });
  expect((await acme.get(id)).state).toBe('active');
  await acme.call('DELETE', `/${id}`);
});

test('an e-mail to an address that its alert no longer has says nothing about the alert', async () => {
  const to = 'former@shop.example';
  mails.refuseRecipient(to, 'no such user');
  const id = await make(to);
  await record(1, 'former');
  await eventually(async () => (await acme.get(id)).state).toBe('retrying');
  const body = { name: 'Too many', q: 'entity:product', target: { type: 'email', to: 'new@shop.example' } };
  expect((await acme.call('PUT', `/${id}`, body)).status).toBeLessThan(300);
  expect((await acme.get(id)).state).toBe('active');
  const before = (await attemptsOf(id)).length;
  const tries = async () => {
    const { rows } = await server.database.pool.query<{ attempts: number }>(
      'select attempts from mail where recipient = $1',
      [to],
    );
    return rows[0]?.attempts ?? 0;
  };
  const triesBefore = await tries();
  await sendAgain(to);
  await eventually(tries).toBeGreaterThan(triesBefore);
  expect((await acme.get(id)).state).toBe('active');
  expect(await attemptsOf(id)).toHaveLength(before);
  await acme.call('DELETE', `/${id}`);
});

test('an e-mail belongs to the subscription that its Message-ID names, of its tenant alone', () => {
  for (const id of ['prices', 'v1.2', '7.8.9', '7.8.r1', '~-_']) {
    const messageIds = alertMessageIds('acme', id, { position: 41, at: 1_700_000_000_000, count: 10 });
    expect(new Set(messageIds).size).toBe(10);
    for (const messageId of messageIds) {
      expect(alertOfMessage('acme', messageId)).toEqual({ id, messageIds });
      expect(alertOfMessage('other', messageId)).toBeUndefined();
    }
  }
  expect(alertOfMessage('acme', '<alert-sample.7@annals>')).toBeUndefined();
  expect(alertOfMessage('acme', '<subscription-suspended.acme.prices.1@annals>')).toBeUndefined();
});

test('each recipient gets an e-mail of its own, and a refused one stops no other, nor counts a change twice', async () => {
  const [gone, here, there] = ['gone-1@shop.example', 'here-2@shop.example', 'there-3@shop.example'];
  mails.refuseRecipient(gone, 'no such user');
  const id = await make([gone, here, there]);
  await record(1, 'several');
  await eventually(() => [here, there].map((to) => mailsTo(to).length)).toEqual([1, 1]);
  for (const to of [here, there]) {
    const [head = ''] = (mailsTo(to)[0] ?? '').split('\n\n');
    expect(head.match(/^(?:To|Cc|Bcc): .*$/gim)).toEqual([`To: ${to}`]);
  }
  await eventually(() => attemptsOf(id)).toHaveLength(3);
  expect(await acme.counts(id)).toMatchObject({ matched: 1, delivered: 1, isWhole: true });
  // The others got it: the alert does not fail, however long one address is refused.
  const failing = async () =>
    (await server.database.pool.query('select failing_since from subscription_state where subscription = $1', [id]))
      .rows;
  await sendAgain(gone);
  await eventually(async () => (await attemptsOf(id)).length).toBeGreaterThan(3);
  expect(await failing()).toEqual([{ failing_since: null }]);
  expect(await acme.get(id)).toMatchObject({
    state: 'active',
    lastError: { status: 550, message: 'The mail server refused the e-mail to recipient 1 of 3.' },
  });
  expect(await acme.counts(id)).toMatchObject({ matched: 1, delivered: 1 });
  // It fails once no recipient is reached.
  for (const to of [here, there]) mails.refuseRecipient(to, 'no such user');
  await server.database.pool.query(`update mail set sent_at = null where recipient = any ($1)`, [[here, there]]);
  await sendAgain(here);
  await eventually(async () => (await acme.get(id)).state).toBe('retrying');
  for (const to of [gone, here, there]) mails.refuseRecipient(to, undefined);
  expect((await acme.call('POST', `/${id}/test`)).body).toEqual({ outcome: 'delivered' });
  mails.refuseRecipient(there, 'no such user');
  expect((await acme.call('POST', `/${id}/test`)).body).toEqual({
    outcome: 'failed',
    status: 550,
    error: 'The mail server refused the e-mail to recipient 3 of 3.',
  });
  expect(mailsTo(here).at(-1)).toContain('1 change of the tenant acme matched the alert "Too many",');
  mails.refuseRecipient(there, undefined);
  await acme.call('DELETE', `/${id}`);
});

test('an alert has 1 to 10 recipients, each one plain address', async () => {
  const addresses = (count: number) => Array.from({ length: count }, (_none, index) => `r${index}@shop.example`);
  for (const to of [addresses(1), addresses(10)]) await acme.call('DELETE', `/${await make(to)}`);
  const name = 'Too many';
  const injected = [
    'a@b.example\r\nBcc: c@d.example',
    'a@b.example, c@d.example',
    'A <a@b.example>',
    'a@b.ex\u0000',
    'a',
  ];
  const wrong = [[], addresses(11), ['a@b.example', 'a@b.example'], ...injected, ...injected.map((to) => [to])];
  for (const to of wrong) {
    const { status, body } = await acme.call<{ details: { field: string }[] }>('POST', '', {
      name,
      target: { type: 'email', to },
    });
    expect([to, status]).toEqual([to, 400]);
    expect(body.details[0]?.field).toMatch(/^target\.to/);
    if (typeof to === 'string') {
      expect(body.details).toEqual([
        { field: 'target.to', message: 'must be one e-mail address, or a list of 1 to 10' },
      ]);
    }
  }
});

test('an alert is not raised by its own creation, and by that of another one it is', async () => {
  const to = 'watcher@shop.example';
  const watcher = { name: 'Watcher', q: 'entity:changelog-subscription', target: { type: 'email', to } };
  // One of the same id was there before.
  await acme.make({ id: 'watcher', ...watcher });
  await acme.call('DELETE', '/watcher');
  const { id } = await acme.make({ id: 'watcher', ...watcher, from: 'start' });
  const { body } = await acme.call<{ items: { type: string }[] }>('GET', `/${id}/preview`);
  const others = body.items.length;
  expect(body.items.slice(-2).map(({ type }) => type)).toEqual(['create', 'delete']);
  await eventually(() => acme.counts(id)).toMatchObject({ matched: others });
  const now = await acme.make({ id: 'from-now', ...watcher });
  await eventually(() => acme.counts(id)).toMatchObject({ matched: others + 1 });
  expect(await acme.counts(now.id)).toMatchObject({ matched: 0 });
  for (const made of [id, now.id]) await acme.call('DELETE', `/${made}`);
});
