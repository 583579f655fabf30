import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { agentKey, callAgentic, putAgent } from '../../support/server/agents.ts';
import { lookAtOnce } from '../../support/server/look-at-once.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startMailServer } from '../../support/vendor/mail-server.ts';
import { type Behaviour, startVendor } from '../../support/vendor/vendor-server.ts';

const random = new Random();

const tenant = 'acme';
const quiet = 'umbrella';
const address = 'desk@acme.example';
const secretKey = Buffer.alloc(32, 9);
const rounds = trials(1);

const vendor = closeAfterAll(await startVendor());
const smtp = closeAfterAll(await startMailServer());
const environment = { OPENAI_BASE_URL: vendor.baseUrl, SMTP_URL: smtp.url, MAIL_FROM: 'annals@annals.example' };
const server = closeAfterAll(await startTestServer({ environment, secretKeys: [secretKey] }));
const token = await server.token(tenant);
const json = [{ key: 'notificationEmail', value: address }];
await server.call(`/configuration/${tenant}/configurations`, { token, json });
/** A second service on the same database. */
const beside = closeAfterAll(
  await startTestServer({ environment, secretKeys: [secretKey], database: server.database }),
);

afterEach(() => {
  vendor.behave({ kind: 'answer' });
});

const refused: Behaviour = { kind: 'status', status: 401 };

const chat = async (agentId: string, behaviour?: Behaviour, by = server) => {
  if (behaviour !== undefined) vendor.behave(behaviour);
  const response = await callAgentic(by, { tenant, token, path: '/chat' }, { agentId, message: 'x' });
  await response.text();
  return response.status;
};

const agentOf = async (id: string, as = token, of = tenant) =>
  (await (await callAgentic(server, { tenant: of, token: as, path: `/agents/${id}`, method: 'GET' })).json()) as {
    enabled: boolean;
    disabledReason?: string;
    metadata: { version: number };
  };

/** The mails about an agent. Its chats have ended, so all of its mails are queued. */
const mailsAbout = async (id: string) => {
  const { pool } = server.database;
  const queued = async () =>
    (
      await pool.query<{ sent: boolean }>('select sent_at is not null as sent from mail where content like $1', [
        `%The agent "${id}"%`,
      ])
    ).rows;
  expect(await queued()).not.toEqual([]);
  await eventually(async () => (await queued()).every(({ sent }) => sent)).toBe(true);
  // A service that sends one, perhaps for the second time, has the table in use until the server has taken it.
  await pool.query('begin; lock table mail in access exclusive mode; commit');
  // And a turn that comes later finds nothing to send.
  await server.context.mail.deliver(new AbortController().signal, lookAtOnce(server.database.db));
  return smtp.all().filter(({ message }) => message.includes(`The agent "${id}"`));
};

test('failures at the same time, of 2 services, disable an agent once and send one e-mail', async () => {
  for (let round = 0; round < rounds; round += 1) {
    const id = `busy-${round}`;
    await putAgent(server, { tenant, token, id });
    vendor.behave(() => ({ ...refused, delay: random.below(20) }));
    const statuses = await Promise.all(
      Array.from({ length: 24 }, (_, place) => chat(id, undefined, place % 2 === 0 ? server : beside)),
    );
    expect(statuses.every((status) => status === 400 || status === 409)).toBe(true);
    expect(statuses.filter((status) => status === 400).length).toBeGreaterThanOrEqual(10);
    const agent = await agentOf(id);
    expect(agent).toMatchObject({ enabled: false, metadata: { version: 2 } });
    expect(agent.disabledReason).toContain('10 configuration failures in a row');
    expect(agent.disabledReason).toContain('The provider refuses the key.');
    const [mail, ...more] = await mailsAbout(id);
    expect(more).toEqual([]);
    expect(mail).toMatchObject({ from: 'annals@annals.example', to: [address] });
    expect(mail?.message).toMatch(/^Message-ID: <.+@.+>/im);
    expect(mail?.message).toContain('The provider refuses the key.');
    expect(mail?.message).not.toContain(agentKey);
  }
  const response = await server.call(`/changelog/${tenant}/changelogs?q=entity:agent actor:system`, { token });
  const { items } = (await response.json()) as { items: { entityId: string; paths: object }[] };
  expect(items.map(({ entityId }) => entityId).sort()).toEqual(
    Array.from({ length: rounds }, (_, n) => `busy-${n}`).sort(),
  );
  expect(items[0]?.paths).toMatchObject({ enabled: { before: true, after: false } });
});

test('a failure, one success, nine failures do not disable; the tenth in a row does, after a change too', async () => {
  await putAgent(server, { tenant, token, id: 'nine' });
  expect(await chat('nine', refused)).toBe(400);
  expect(await chat('nine', { kind: 'answer' })).toBe(200);
  for (let failures = 0; failures < 9; failures += 1) expect(await chat('nine', refused)).toBe(400);
  expect((await agentOf('nine')).enabled).toBe(true);
  // A change of an agent that stays enabled does not reset the count.
  await putAgent(server, { tenant, token, id: 'nine' }, { enabled: true });
  expect(await chat('nine', refused)).toBe(400);
  expect((await agentOf('nine')).enabled).toBe(false);
  expect(await chat('nine')).toBe(409);
});

test('429, a vendor 500, a cut or garbled answer and a time-out neither count nor reset', async () => {
  await putAgent(server, { tenant, token, id: 'steady' });
  for (let failures = 0; failures < 9; failures += 1) await chat('steady', refused);
  const others: Behaviour[] = [
    { kind: 'status', status: 429 },
    { kind: 'status', status: 500 },
    { kind: 'status', status: 529 },
    { kind: 'status', status: 400 },
    { kind: 'garbage' },
    { kind: 'cut' },
  ];
  for (const behaviour of others) expect(await chat('steady', behaviour)).toBeGreaterThanOrEqual(400);
  // On a server of its own: any other call may take as long as a slow machine needs.
  const impatient = await startTestServer({
    environment: { OPENAI_BASE_URL: vendor.baseUrl },
    completionTimes: { provider: { silence: 300, total: 600_000 }, quotaWait: 300 },
    database: server.database,
    secretKeys: [secretKey],
  });
  onTestFinished(() => impatient.close());
  expect(await chat('steady', { kind: 'hang' }, impatient)).toBeGreaterThanOrEqual(400);
  expect((await agentOf('steady')).enabled).toBe(true);
  await chat('steady', refused);
  expect((await agentOf('steady')).enabled).toBe(false);
});

test('enabling it again resets the count, and takes the reason away', async () => {
  await putAgent(server, { tenant, token, id: 'again' });
  for (let failures = 0; failures < 10; failures += 1) await chat('again', refused);
  expect((await agentOf('again')).disabledReason).toBeDefined();
  const enable = [{ op: 'REPLACE', path: '/enabled', value: true }];
  const call = { tenant, token, path: '/agents/again', method: 'PATCH' };
  expect((await callAgentic(server, call, enable)).status).toBe(204);
  expect(await agentOf('again')).not.toHaveProperty('disabledReason');
  for (let failures = 0; failures < 9; failures += 1) await chat('again', refused);
  expect((await agentOf('again')).enabled).toBe(true);
  await chat('again', refused);
  expect((await agentOf('again')).enabled).toBe(false);
  expect(await mailsAbout('again')).toHaveLength(2);
});

test('a failure of a chat that began before the agent was enabled again does not count', async () => {
  await putAgent(server, { tenant, token, id: 'stale' });
  const { promise: enabledAgain, resolve: refuse } = Promise.withResolvers<void>();
  onTestFinished(() => refuse());
  vendor.behave({ ...refused, after: enabledAgain });
  const before = vendor.requests.length;
  const begun = Array.from({ length: 10 }, () => chat('stale'));
  await eventually(() => vendor.requests.length).toBe(before + 10);
  await putAgent(server, { tenant, token, id: 'stale' }, { enabled: false });
  await putAgent(server, { tenant, token, id: 'stale' }, { enabled: true });
  refuse();
  expect(new Set(await Promise.all(begun))).toEqual(new Set([400]));
  expect((await agentOf('stale')).enabled).toBe(true);
});

test('a mail server that refuses connections for a while gets the mail later, once, from whichever service', async () => {
  await smtp.stop();
  const { port } = new URL(smtp.url);
  await expect(once(connect(Number(port), '127.0.0.1'), 'connect')).rejects.toThrow('ECONNREFUSED');
  await putAgent(server, { tenant, token, id: 'patient' });
  for (let failures = 0; failures < 10; failures += 1) expect(await chat('patient', refused)).toBe(400);
  expect(await agentOf('patient')).toMatchObject({ enabled: false });
  const triedInVain = 'select from mail where content like \'%"patient"%\' and attempts >= 1 and sent_at is null';
  await eventually(async () => (await server.database.pool.query(triedInVain)).rowCount).toBe(1);
  await smtp.start();
  const [mail, ...more] = await mailsAbout('patient');
  expect(mail).toMatchObject({ to: [address] });
  expect(more).toEqual([]);
});

test('without notificationEmail the agent is disabled as well, and says why and that no mail was sent', async () => {
  const quietToken = await server.token(quiet);
  await putAgent(server, { tenant: quiet, token: quietToken, id: 'quiet' });
  vendor.behave(refused);
  for (let failures = 0; failures < 10; failures += 1) {
    await callAgentic(server, { tenant: quiet, token: quietToken, path: '/chat' }, { agentId: 'quiet', message: 'x' });
  }
  const agent = await agentOf('quiet', quietToken, quiet);
  expect(agent.enabled).toBe(false);
  expect(agent.disabledReason).toContain('The provider refuses the key.');
  expect(agent.disabledReason).toContain('notificationEmail holds no address');
  // A mail that is not queued by now is never sent.
  expect((await server.database.pool.query('select from mail where tenant = $1', [quiet])).rowCount).toBe(0);
  expect(smtp.all().filter(({ message }) => message.includes('quiet'))).toEqual([]);
});

test('failures of a self-hosted model server do not count, and are not reported as of an incompatible server', async () => {
  const data = (event: object) => `data: ${JSON.stringify(event)}\n\n`;
  const text = data({ choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: null }] });
  const behaviours: Behaviour[] = [
    { kind: 'events', events: [text, data({ error: { code: 500 } })] },
    { kind: 'events', events: [text] },
    { kind: 'status', status: 200, body: { error: { code: 429 } } },
    { kind: 'status', status: 200, body: { choices: [{ message: { content: '' }, finish_reason: 'stop' }] } },
    { kind: 'status', status: 200, body: { choices: [] } },
    { kind: 'status', status: 429 },
    { kind: 'status', status: 500 },
    { kind: 'cut' },
  ];
  const hosting = await startTestServer({
    environment: { ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8' },
    database: server.database,
    secretKeys: [secretKey],
  });
  onTestFinished(() => hosting.close());
  const baseUrl = `${vendor.baseUrl}/v1`;
  const llmConfig = { provider: 'self_hosted', model: 'm', baseUrl };
  await putAgent(hosting, { tenant, token, id: 'hosted' }, { llmConfig });
  for (let failures = 0; failures < 9; failures += 1) await chat('hosted', refused, hosting);
  for (const path of ['/chat', '/chat-stream']) {
    for (const behaviour of behaviours) {
      vendor.behave(behaviour);
      const response = await callAgentic(hosting, { tenant, token, path }, { agentId: 'hosted', message: 'x' });
      const body = await response.text();
      expect(path === '/chat' ? response.status : 500).toBeGreaterThanOrEqual(400);
      expect(body).toContain('"message":');
      expect(body).not.toContain('as one of its kind');
    }
  }
  expect((await agentOf('hosted')).enabled).toBe(true);
  // A 404 may mean the address as well as the model.
  vendor.behave({ kind: 'status', status: 404 });
  const missing = await callAgentic(hosting, { tenant, token, path: '/chat' }, { agentId: 'hosted', message: 'x' });
  expect(await missing.json()).toMatchObject({
    message: 'The self-hosted server does not know the model, or has nothing at this address.',
  });
  expect((await agentOf('hosted')).enabled).toBe(false);
});

test('a self-hosted address that is refused, cannot be reached, or is no model server counts', async () => {
  const web = createServer((_request, response) => response.end('<html>hello</html>'));
  await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
  const { port } = web.address() as { port: number };
  const allowing = await startTestServer({
    environment: { ANNALS_SELF_HOSTED_ALLOW: `127.0.0.1:${port},127.0.0.1:1` },
    database: server.database,
    secretKeys: [secretKey],
  });
  const texts = new Set<string>();
  let failures = 0;
  const places = [`http://127.0.0.1:${port}/v1`, 'http://127.0.0.1:1', 'http://localhost:2/latest'];
  // Ten failures disable, so each of them has counted.
  for (const [place, count] of [4, 3, 3].entries()) {
    const llmConfig = { provider: 'self_hosted', model: 'm', baseUrl: places[place] };
    await putAgent(allowing, { tenant, token, id: 'away' }, { llmConfig });
    expect([failures, (await agentOf('away')).enabled]).toEqual([failures, true]);
    for (let nth = 0; nth < count; nth += 1) {
      const response = await callAgentic(allowing, { tenant, token, path: '/chat' }, { agentId: 'away', message: 'x' });
      texts.add(`${response.status} ${await response.text()}`);
      failures += 1;
    }
  }
  expect([failures, (await agentOf('away')).enabled]).toEqual([10, false]);
  // Every failure to reach a server has the same message.
  expect([...texts]).toHaveLength(1);
  await allowing.close();
  web.close();
});
