import { expect, test } from 'vitest';
import { sentValues } from '../../../src/tenants/configuration/sent-values.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { statementsWaiting } from '../../support/server/statements-waiting.ts';

const base = '/configuration/acme/configurations';

const server = closeAfterAll(await startTestServer());
const token = await server.token('acme', { name: 'Jane Doe' });

test('POST makes all items of the array with version 1 and answers them with 201', async () => {
  const made = await send(
    'POST',
    base,
    '[{"key":"a1","value":{"deep":[1]},"description":"d"},{"key":"a2","value":null}]',
  );
  expect(made).toEqual({
    status: 201,
    body: [
      { key: 'a1', value: { deep: [1] }, version: 1, description: 'd', secured: false },
      { key: 'a2', value: null, version: 1, secured: false },
    ],
  });
  expect(await send('GET', `${base}?keys=a2,a1,none`)).toEqual({ status: 200, body: made.body });
  expect(await send('GET', `${base}/a1`)).toEqual({ status: 200, body: made.body[0] });
});

test('a list of more than 4 MiB comes whole and in its order, its later part in pieces', async () => {
  const longToken = await server.token('long');
  await server.database.pool.query(
    `insert into configuration (tenant, key, value, version)
       select 'long', 'long' || n, to_json(repeat(n::text, 900000))::text, n from generate_series(1, 7) n`,
  );
  const response = await server.call('/configuration/long/configurations', { token: longToken });
  const items = (await response.json()) as { key: string; value: string; version: number }[];
  expect(items.map(({ key, value, version }) => [key, value.length, value[0], version])).toEqual(
    [1, 2, 3, 4, 5, 6, 7].map((n) => [`long${n}`, 900_000, String(n), n]),
  );
});

test('of two that create the same items in opposite order one creates them, and neither is a deadlock', async () => {
  const { pool } = server.database;
  const blocker = await pool.connect();
  await blocker.query('begin');
  await blocker.query(`insert into configuration (tenant, key, value, version) values ('acme', 'd2', '1', 1)`);
  const items = ['d1', 'd2', 'd3'].map((key) => ({ key, value: 1 }));
  const sent = [items, items.toReversed()].map((body) => send('POST', base, JSON.stringify(body)));
  // Both hold all that comes before the item in the middle, and wait.
  await eventually(async () => (await statementsWaiting(server.database)).length).toBeGreaterThanOrEqual(2);
  await blocker.query('rollback');
  blocker.release();
  expect((await Promise.all(sent)).map(({ status }) => status).toSorted()).toEqual([201, 409]);
});

test('where one key exists already none is stored, and 409 names it', async () => {
  await send('POST', base, '[{"key":"b1","value":1}]');
  expect(await send('POST', base, '[{"key":"b0","value":0},{"key":"b1","value":2}]')).toEqual({
    status: 409,
    body: {
      status: 409,
      type: 'conflict_resource',
      message: 'A configuration exists already; none was stored.',
      details: [{ field: '1.key', message: 'exists already' }],
    },
  });
  expect((await send('GET', `${base}/b0`)).status).toBe(404);
  expect((await send('GET', `${base}/b1`)).body.value).toBe(1);
});

test('two that create the same keys in opposite orders: one gets 201, the other 409', async () => {
  const keys = Array.from({ length: 50 }, (_, index) => ({ key: `race${index}`, value: index }));
  const answers = await Promise.all(
    [keys, keys.toReversed()].map((items) => send('POST', base, JSON.stringify(items))),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 409]);
});

test('PUT replaces, counts the version up, and refuses an old version with 409', async () => {
  await send('POST', base, '[{"key":"c","value":1,"description":"gone after PUT"}]');
  expect(await send('PUT', `${base}/c`, '{"key":"c","value":2,"version":1}')).toEqual({
    status: 200,
    body: { key: 'c', value: 2, version: 2, secured: false },
  });
  expect(await send('PUT', `${base}/c`, '{"key":"c","value":3,"version":1}')).toMatchObject({
    status: 409,
    body: { type: 'conflict_resource', details: [{ field: 'version', message: 'must be 2' }] },
  });
  expect((await send('PUT', `${base}/c`, '{"value":4}')).body).toMatchObject({ value: 4, version: 3 });
});

test('of concurrent PUTs that carry the same version one alone succeeds', async () => {
  await send('POST', base, '[{"key":"d","value":0}]');
  const puts = Array.from({ length: 8 }, (_, index) => send('PUT', `${base}/d`, `{"value":${index},"version":1}`));
  const statuses = (await Promise.all(puts)).map(({ status }) => status);
  expect(statuses.sort()).toEqual([200, ...Array(7).fill(409)]);
});

test('PUT answers 400 where the body has another key, or the key is not there yet', async () => {
  await send('POST', base, '[{"key":"e","value":0}]');
  expect(await send('PUT', `${base}/e`, '{"key":"f","value":1}')).toMatchObject({
    status: 400,
    body: { type: 'validation_violation', details: [{ field: 'key', message: 'must be the key of the path' }] },
  });
  expect(await send('PUT', `${base}/f`, '{"key":"f","value":1}')).toMatchObject({
    status: 400,
    body: { details: [{ field: 'key', message: 'does not exist; create it with POST' }] },
  });
});

test('DELETE answers 204, and 404 where there is nothing', async () => {
  await send('POST', base, '[{"key":"g","value":0}]');
  expect((await send('DELETE', `${base}/g`)).status).toBe(204);
  expect((await send('DELETE', `${base}/g`)).status).toBe(404);
  expect(await send('GET', `${base}/g`)).toEqual({
    status: 404,
    body: { status: 404, type: 'resource_not_found', message: 'There is no configuration with this key.' },
  });
});

test('a secured value never comes back, and is sealed in the database', async () => {
  const secret = 'correct horse battery staple';
  const made = await send('POST', base, JSON.stringify([{ key: 'h', value: secret, secured: true }]));
  expect(made.body).toEqual([{ key: 'h', value: '********', version: 1, secured: true }]);
  const put = await send('PUT', `${base}/h`, JSON.stringify({ value: `${secret}!` }));
  expect(put.body).toEqual({ key: 'h', value: '********', version: 2, secured: true });
  expect(JSON.stringify(await send('GET', base))).not.toContain('horse');
  const { rows } = await server.database.pool.query("select value, sealed::text from configuration where key = 'h'");
  expect(rows[0].value).toBeNull();
  expect(Buffer.from(rows[0].sealed.slice(2), 'hex').includes('horse')).toBe(false);
  expect(await server.context.configuration.read('acme', 'h')).toEqual({ secured: true, secret: `${secret}!` });
});

test('the mask sent back keeps the secret; as a new secret it is refused', async () => {
  await send('POST', base, '[{"key":"i","value":"s3cret","secured":true}]');
  const kept = await send('PUT', `${base}/i`, '{"value":"********","description":"new words"}');
  expect(kept.body).toMatchObject({ value: '********', description: 'new words', version: 2 });
  expect(await server.context.configuration.read('acme', 'i')).toEqual({ secured: true, secret: 's3cret' });
  expect((await send('POST', base, '[{"key":"j","value":"********","secured":true}]')).status).toBe(400);
});

test('the mask never takes the place of a secret: a value that is no longer secured is re-entered', async () => {
  await send('POST', base, '[{"key":"open","value":"s3cret","secured":true}]');
  expect(await send('PUT', `${base}/open`, '{"value":"********","secured":false}')).toMatchObject({
    status: 400,
    body: { details: [{ field: 'value' }] },
  });
  expect(await server.context.configuration.read('acme', 'open')).toEqual({ secured: true, secret: 's3cret' });
  expect((await send('PUT', `${base}/open`, '{"value":"words","secured":false}')).body).toMatchObject({
    value: 'words',
  });
  expect((await send('PUT', `${base}/open`, '{"value":"********"}')).body).toMatchObject({ secured: false });
  await send('POST', base, '[{"key":"openAiApiToken","value":"sk-1"}]');
  const sealedToken = await send('PUT', `${base}/openAiApiToken`, '{"value":"********","secured":false}');
  expect(sealedToken.body).toMatchObject({ secured: true, version: 2 });
  expect(await server.context.configuration.read('acme', 'openAiApiToken')).toEqual({ secured: true, secret: 'sk-1' });
  await send('DELETE', `${base}/openAiApiToken`);
});

test('a sealed value that was moved to another row does not open', async () => {
  await send('POST', base, '[{"key":"k1","value":"one","secured":true},{"key":"k2","value":"two","secured":true}]');
  const { rows } = await server.database.pool.query("select sealed from configuration where key = 'k1'");
  await server.database.pool.query("update configuration set sealed = $1 where key = 'k2'", [rows[0].sealed]);
  await expect(server.context.configuration.read('acme', 'k2')).rejects.toThrow('no key of ANNALS_SECRET_KEY opens');
});

test('providerApiToken is secured whatever the request says, and takes visible ASCII alone', async () => {
  const refused = await send('POST', base, '[{"key":"providerApiToken","value":"with blank"}]');
  expect(refused.body.details).toEqual([
    { field: '0.value', message: 'must be 1 to 4096 visible ASCII characters without blanks' },
  ]);
  const made = await send('POST', base, '[{"key":"providerApiToken","value":"sk-own","secured":false}]');
  expect(made.body).toEqual([{ key: 'providerApiToken', value: '********', version: 1, secured: true }]);
  const put = await send('PUT', `${base}/providerApiToken`, '{"value":"sk-other","secured":false}');
  expect(put.body).toMatchObject({ value: '********', secured: true });
});

test('numbers come back as they were written', async () => {
  const value = '{"big":9007199254740993,"price":1.10,"list":[1e400,-0.0]}';
  const response = await call('POST', base, `[{"key":"l","value": ${value}}]`);
  expect(await response.text()).toContain(`"value":${value}`);
  expect(await (await call('GET', `${base}/l`)).text()).toContain(`"value":${value}`);
});

// The limit of a body (1 MiB, 100,000 values) is just above that of a value, so these ask below HTTP (contract 11).
test.each([
  ['1048576 bytes', (more: number) => `"${'x'.repeat(1_048_574 + more)}"`],
  [
    '100000 JSON values',
    (more: number) =>
      `[${Array(99_999 + more)
        .fill(0)
        .join()}]`,
  ],
])('a value of %s is stored by POST and PUT, one more is 413', async (limit, jsonOf) => {
  const { configuration } = server.context;
  const key = limit.replace(' ', '-');
  const jane = { tenant: 'acme', actor: 'Jane Doe' };
  const sent = (more: number) => {
    const [value] = sentValues.here(`{"value": ${jsonOf(more)}}`);
    if (value === undefined) throw new Error('no value');
    return { ...value, value: JSON.parse(value.json) };
  };
  const refusal = { status: 413, type: 'payload_too_large', message: `A configuration value has at most ${limit}.` };
  await expect(configuration.create(jane, [{ ...sent(1), key }])).rejects.toMatchObject(refusal);
  expect(await configuration.create(jane, [{ ...sent(0), key }])).toHaveLength(1);
  await expect(configuration.replace(jane, key, sent(1))).rejects.toMatchObject(refusal);
  expect(await configuration.replace(jane, key, sent(0))).toMatchObject({ version: 2 });
  await configuration.remove(jane, key);
});

test.each([
  ['no array', '{"key":"m","value":1}'],
  ['an empty array', '[]'],
  ['no key', '[{"value":1}]'],
  ['no value', '[{"key":"m"}]'],
  ['an empty key', '[{"key":"","value":1}]'],
  ['a comma in a key', '[{"key":"m,n","value":1}]'],
  ['a NUL in a key', '[{"key":"m\\u0000","value":1}]'],
  ['a lone surrogate in a key', '[{"key":"\\ud800","value":1}]'],
  ['a NUL in a description', '[{"key":"m","value":1,"description":"\\u0000"}]'],
  ['a key twice', '[{"key":"m","value":1},{"key":"m","value":2}]'],
  ['a secured value that is no string', '[{"key":"m","value":1,"secured":true}]'],
])('400 for %s', async (_what, body) => {
  expect(await send('POST', base, body)).toMatchObject({ status: 400, body: { type: 'validation_violation' } });
});

test('a description that is not a string is 400 with its field', async () => {
  expect(await send('POST', base, '[{"key":"m","value":1,"description":null}]')).toMatchObject({
    status: 400,
    body: { details: [{ field: '0.description', message: 'must be a string without NUL and lone surrogates' }] },
  });
});

test('a key with NUL is 400, in the path and in the query', async () => {
  expect((await send('GET', `${base}/%00`)).status).toBe(400);
  expect(await send('GET', `${base}?keys=l,%00`)).toMatchObject({
    status: 400,
    body: { details: [{ field: 'keys', message: 'At position 3: expected a character of Unicode, found NUL' }] },
  });
});

test('viewing may not write, managing may read, and no other scope does either', async () => {
  const viewer = await server.token('acme', { scope: 'configuration.configuration_view' });
  const manager = await server.token('acme', { scope: 'configuration.configuration_manage' });
  const otherToken = await server.token('acme', { scope: 'ai.completion_manage' });
  const status = async (method: string, with_: string) => (await server.call(base, { method, token: with_ })).status;
  expect(await status('GET', viewer)).toBe(200);
  expect(await status('POST', viewer)).toBe(403);
  expect(await status('GET', manager)).toBe(200);
  expect(await status('GET', otherToken)).toBe(403);
});

test('what one tenant sets another never sees', async () => {
  const stranger = await server.token('rival');
  const response = await server.call('/configuration/rival/configurations', { token: stranger });
  expect(await response.json()).toEqual([]);
});

test('every change is in the change history, with secrets masked', async () => {
  const historian = await server.token('history', { name: 'Jane Doe' });
  const path = '/configuration/history/configurations';
  const write = (method: string, suffix: string, body?: string) =>
    server.call(`${path}${suffix}`, { method, token: historian, ...(body === undefined ? {} : json(body)) });
  await write('POST', '', '[{"key":"plain","value":1.10},{"key":"hidden","value":"first","secured":true}]');
  await write('PUT', '/plain', '{"value":{"a":2}}');
  await write('PUT', '/hidden', '{"value":"second"}');
  await write('PUT', '/hidden', '{"value":"********","description":"why"}');
  await write('PUT', '/plain', '{"value":"now secret","secured":true}');
  await write('DELETE', '/hidden');
  const response = await server.call('/changelog/history/changelogs?q=entity:configuration&size=100', {
    token: historian,
  });
  const text = await response.text();
  expect(text).toContain('"value":{"after":1.10}');
  for (const secret of ['first', 'second', 'now secret']) expect(text).not.toContain(secret);
  const { items } = JSON.parse(text);
  const shown = items.map(({ type, entityId, actor, paths }: Entry) => ({ type, entityId, actor, paths }));
  const hidden = { before: '********', after: '********' };
  expect(shown).toHaveLength(7);
  expect(shown).toEqual(
    expect.arrayContaining([
      {
        type: 'create',
        entityId: 'hidden',
        actor: 'Jane Doe',
        paths: {
          key: { after: 'hidden' },
          value: { after: '********' },
          version: { after: 1 },
          secured: { after: true },
        },
      },
      {
        type: 'update',
        entityId: 'hidden',
        actor: 'Jane Doe',
        paths: { value: hidden, version: { before: 1, after: 2 } },
      },
      {
        type: 'update',
        entityId: 'hidden',
        actor: 'Jane Doe',
        paths: { version: { before: 2, after: 3 }, description: { after: 'why' } },
      },
      {
        type: 'update',
        entityId: 'plain',
        actor: 'Jane Doe',
        paths: { value: hidden, version: { before: 2, after: 3 }, secured: { before: false, after: true } },
      },
    ]),
  );
});

test('a change that cannot be recorded does not happen', async () => {
  await send('POST', base, '[{"key":"n","value":1}]');
  await server.database.pool.query('alter table change_entry rename to change_entry_away');
  try {
    expect((await send('PUT', `${base}/n`, '{"value":2}')).status).toBe(500);
  } finally {
    await server.database.pool.query('alter table change_entry_away rename to change_entry');
  }
  expect((await send('GET', `${base}/n`)).body).toMatchObject({ value: 1, version: 1 });
});

interface Entry {
  type: string;
  entityId: string;
  actor: string;
  paths: Record<string, unknown>;
}

function json(body: string): RequestInit {
  return { headers: { 'content-type': 'application/json' }, body };
}

async function call(method: string, path: string, body?: string): Promise<Response> {
  return await server.call(path, { method, token, ...(body === undefined ? {} : json(body)) });
}

async function send(method: string, path: string, body?: string) {
  const response = await call(method, path, body);
  const text = await response.text();
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
}
