import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { packageFolder } from '../../src/core/package-folder.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { annals } from '../support/server/command.ts';
import { createEmptyTestDatabase } from '../support/server/database.ts';
import { ownPort } from '../support/server/own-port.ts';

const database = closeAfterAll(await createEmptyTestDatabase());
const environment = {
  DATABASE_URL: database.url,
  ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
  LOG_LEVEL: 'silent',
};

test('migrate names what it ran, and nothing when there is nothing to run', async () => {
  const { code, stdout, stderr } = await annals(['migrate'], environment);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const files = await readdir(join(packageFolder(), 'migrations'));
  expect(JSON.parse(stdout)).toEqual({ migrations: files.filter((name) => name.endsWith('.sql')).toSorted() });
  expect(await annals(['migrate'], environment)).toEqual({ code: 0, stdout: '{"migrations":[]}\n', stderr: '' });
});

test('a tenant is made once, and a second call is no error', async () => {
  const first = await annals(['tenant', 'create', 'acme'], environment);
  expect(first).toEqual({ code: 0, stdout: '{"tenant":"acme","created":true}\n', stderr: '' });
  const second = await annals(['tenant', 'create', 'acme'], environment);
  expect(second).toEqual({ code: 0, stdout: '{"tenant":"acme","created":false}\n', stderr: '' });
});

test('a client is shown with its secret once, listed without it, and revoked', async () => {
  await createTenant(database.db, 'shop');
  const create = ['client', 'create', '--tenant', 'shop', '--scope', 'changelog.changelog_read', '--name', 'Jane Doe'];
  const made = await annals(create, environment);
  expect(made.code).toBe(0);
  const client = JSON.parse(made.stdout);
  expect(Object.keys(client)).toEqual(['clientId', 'clientSecret', 'tenant', 'scope', 'name']);
  expect(client).toMatchObject({ tenant: 'shop', scope: 'changelog.changelog_read', name: 'Jane Doe' });

  const listed = await annals(['client', 'list', '--tenant', 'shop'], environment);
  expect(listed.stdout).not.toContain(client.clientSecret);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ clientId: client.clientId, name: 'Jane Doe', revokedAt: null }]);

  const revoked = await annals(['client', 'revoke', client.clientId], environment);
  expect(revoked).toEqual({ code: 0, stdout: `{"clientId":"${client.clientId}","revoked":true}\n`, stderr: '' });
  const [after] = JSON.parse((await annals(['client', 'list', '--tenant', 'shop'], environment)).stdout);
  expect(after.revokedAt).not.toBeNull();
});

test('a client that sees a part of the history is shown and listed with it, and has few scopes', async () => {
  await createTenant(database.db, 'shop');
  const create = (...rest: string[]) =>
    annals(['client', 'create', '--tenant', 'shop', '--scope', ...rest], environment);
  const shown = { query: 'entity:order actorId:u-17', hide: ['card', 'items.*.price', 'phone'], actors: 'all' };
  const query = ['--query', shown.query, '--hide', 'card items.*.price,phone'];
  const part = [...query, '--actors', 'all'];
  const made = await create('changelog.changelog_read changelog.viewer_issue', ...part);
  expect(JSON.parse(made.stdout)).toMatchObject(shown);
  const { clientId } = JSON.parse(made.stdout);
  const listed = JSON.parse((await annals(['client', 'list', '--tenant', 'shop'], environment)).stdout);
  expect(listed.find((client: { clientId: string }) => client.clientId === clientId)).toMatchObject(shown);

  const wide = await create('changelog.changelog_read ai.agent_read', '--hide', 'card');
  expect(wide).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('cannot have ai.agent_read') });
  const wrong = await create('changelog.changelog_read', '--query', 'type:update entity:~o');
  expect(wrong).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('not valid at position 13') });
  expect(await create('changelog.changelog_read', '--hide', ' ')).toMatchObject({ code: 2, stdout: '' });
  expect(await create('changelog.changelog_read', '--actors', 'some')).toMatchObject({ code: 2, stdout: '' });
  const names = await create('changelog.changelog_read', ...query, '--actors', 'names');
  expect(names).toMatchObject({ code: 2, stderr: expect.stringContaining('not valid at position 14') });
  const none = await create('changelog.changelog_read', '--actors', 'none');
  expect(JSON.parse(none.stdout)).toMatchObject({ query: '', hide: [], actors: false });
  const off = await create('changelog.changelog_read', '--actors', 'false');
  expect(JSON.parse(off.stdout)).toMatchObject({ actors: false });
});

test('the clients of a tenant that is not there are no empty list', async () => {
  const listed = await annals(['client', 'list', '--tenant', 'shoop'], environment);
  expect(listed).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('there is no tenant shoop') });
});

test('a link into the console is one line, and makes a client without a secret that is listed and revoked', async () => {
  await createTenant(database.db, 'linked');
  const link = ['console', 'link', '--tenant', 'linked'];
  const made = await annals(link, environment);
  expect(made.code).toBe(0);
  expect(made.stdout).toMatch(/^http:\/\/127\.0\.0\.1:8080\/console\/#link=linked\.[\w-]{43}\n$/);
  const listed = JSON.parse((await annals(['client', 'list', '--tenant', 'linked'], environment)).stdout);
  const scope =
    'changelog.changelog_read changelog.proof_read changelog.access_read changelog.subscription_read ai.agent_read configuration.configuration_view schema.schema_read schema.custominstance_read';
  expect(listed).toMatchObject([{ tenant: 'linked', scope: expect.stringContaining(scope), revokedAt: null }]);
  const [{ clientId, name }] = listed;
  expect(name).toBe(clientId);
  expect(made.stderr).toMatch(new RegExp(`^Valid once, for 60 seconds. It signs in ${clientId} with changelog`));
  expect((await annals(['client', 'revoke', clientId], environment)).code).toBe(0);

  const named = ['--name', 'Jane Doe', '--scope', 'changelog.changelog_read ai.agent_manage'];
  const elsewhere = { ...environment, ANNALS_BASE_URL: 'https://shop.example/annals' };
  expect((await annals([...link, ...named], elsewhere)).stdout).toMatch(
    /^https:\/\/shop\.example\/annals\/console\/#link=/,
  );
  const [, second] = JSON.parse((await annals(['client', 'list', '--tenant', 'linked'], environment)).stdout);
  expect(second).toMatchObject({ name: 'Jane Doe', scope: 'changelog.changelog_read ai.agent_manage' });

  expect(await annals(['console', 'link', '--tenant', 'nobody'], environment)).toMatchObject({ code: 1, stdout: '' });
  for (const wrong of [
    ['--scope', 'x'],
    ['--name', 'system'],
  ]) {
    expect(await annals([...link, ...wrong], environment)).toMatchObject({ code: 2, stdout: '' });
  }
  const free = await annals(link, { ...environment, PORT: '0' });
  expect(free.stderr).toContain('put the port of the service into the address');
});

test('a client whose name or scope may not be is wrong usage', async () => {
  const create = ['client', 'create', '--tenant', 'shop', '--scope'];
  for (const rest of [['changelog.changelog_read', '--name', 'system'], ['changelog.changelog_delete']]) {
    const { code, stdout } = await annals([...create, ...rest], environment);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  }
  const { stderr } = await annals([...create, 'changelog.changelog_delete'], environment);
  expect(stderr).toMatch(
    /^annals: There is no scope changelog\.changelog_delete\. The scopes are: changelog\.changelog_read, /,
  );
});

test('what is not there is exit code 1 with what to do', async () => {
  expect(await annals(['import', '--tenant', 'nobody', '-'], environment)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'annals: there is no tenant nobody; create it with: annals tenant create nobody\n',
  });
  const client = await annals(['client', 'revoke', 'acme.0'], environment);
  expect(client).toEqual({ code: 1, stdout: '', stderr: 'annals: there is no client acme.0\n' });
});

test('import records the changes of stdin and answers with the counts', async () => {
  await createTenant(database.db, 'acme');
  const line = JSON.stringify({
    op: 'insert',
    entity: 'order',
    entityId: '1',
    at: new Date().toISOString(),
    after: { a: 1 },
  });
  const { code, stdout } = await annals(['import', '--tenant', 'acme', '-'], environment, `${line}\n`);
  expect({ code, counts: JSON.parse(stdout) }).toMatchObject({
    code: 0,
    counts: { read: 1, recorded: 1, rejected: 0 },
  });
});

test('an empty database in another encoding than UTF-8 is refused with what to write, and stays empty', async () => {
  const name = `ascii_${randomBytes(8).toString('hex')}`;
  await database.pool.query(`create database ${name} encoding sql_ascii locale 'C' template template0`);
  onTestFinished(async () => {
    await database.pool.query(`drop database ${name} with (force)`);
  });
  const url = new URL(database.url);
  url.pathname = name;
  const outcome = await annals(['migrate'], { ...environment, DATABASE_URL: url.href });
  expect(outcome).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'annals: The database has the encoding SQL_ASCII; Annals needs UTF8. Create one with: ' +
      "create database annals owner annals encoding 'UTF8' template template0\n",
  });
  const client = new pg.Client(url.href);
  await client.connect();
  onTestFinished(() => client.end());
  expect((await client.query('select from pg_tables where schemaname = $1', ['public'])).rowCount).toBe(0);
});

test('a database role without privileges is an error of one line, which names the page that lists them', async () => {
  const role = `guest_${database.url.slice(-8)}`;
  const superuserUrl = new URL(database.url);
  superuserUrl.username = 'postgres';
  const superuser = new pg.Client(superuserUrl.href);
  await superuser.connect();
  onTestFinished(async () => {
    await superuser.query(`drop role ${role}`);
    await superuser.end();
  });
  await superuser.query(`create role ${role} login password 'guest-secret'`);
  const url = new URL(database.url);
  url.username = role;
  url.password = 'guest-secret';
  const { code, stdout, stderr } = await annals(['migrate'], { ...environment, DATABASE_URL: url.href });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(
    /^annals: the database of DATABASE_URL refuses: permission denied for .+ \(42501\)\. docs\/deploy\.md .+\n$/,
  );
});

test('a database that is away or refuses is exit code 1 in one line, without its password', async () => {
  const away = new URL(database.url);
  away.port = String(await ownPort());
  const refuses = new URL(database.url);
  refuses.password = 'wrong-secret';
  for (const [url, reason] of [
    [away, 'cannot be reached (ECONNREFUSED)'],
    [refuses, 'refuses: password authentication failed for user "annals" (28P01)'],
  ] as const) {
    const outcome = await annals(['migrate'], { ...environment, DATABASE_URL: url.href });
    expect(outcome).toEqual({ code: 1, stdout: '', stderr: `annals: the database of DATABASE_URL ${reason}\n` });
  }
});
