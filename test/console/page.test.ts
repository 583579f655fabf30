import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { Browser, type ConsoleSession } from '../support/server/browser.ts';
import { sendRaw } from '../support/server/raw-request.ts';
import { startTestServer } from '../support/server/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const publicUrl = 'https://shop.example.org/tools/annals';
const built = `<!doctype html><html><head><base href="/console/"><script type="module" src="assets/index-B3x.js"></script></head></html>`;
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'self'; " +
  "form-action 'none'; frame-ancestors 'none'";

const folder = temporaryFolder();
await mkdir(join(folder, 'assets', 'icons'), { recursive: true });
await writeFile(join(folder, 'index.html'), built);
await writeFile(join(folder, 'secret.txt'), 'not an asset');
await writeFile(join(folder, 'assets', 'index-B3x.js'), 'let plain;');
await writeFile(join(folder, 'assets', 'index-B3x.js.br'), 'packed');
await writeFile(join(folder, 'assets', '.hidden'), 'hidden');
await writeFile(join(folder, 'assets', 'icons', 'logo-1a.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
const server = closeAfterAll(await startTestServer({ consoleFolder: folder }));
/** At a public address with a path. */
const proxied = closeAfterAll(
  await startTestServer({
    consoleFolder: folder,
    database: server.database,
    environment: { ANNALS_BASE_URL: publicUrl },
  }),
);

describe('the page', () => {
  test.each(['/console', '/console/', '/console/history', '/console/a/b.c?q=1', '/console/apis'])(
    '%s is the index',
    async (path) => {
      const answer = await server.call(path);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(answer.headers.get('content-security-policy')).toBe(policy);
      expect(answer.headers.get('cache-control')).toBe('no-cache');
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
      expect(answer.headers.get('referrer-policy')).toBe('same-origin');
      expect(answer.headers.get('cross-origin-opener-policy')).toBe('same-origin');
      expect(answer.headers.get('access-control-allow-origin')).toBeNull();
      expect(await answer.text()).toMatch(
        /<base href="\/console\/"><meta name="annals-console-version" content="[0-9a-f]{16}">/,
      );
    },
  );

  test('/ leads to it', async () => {
    const answer = await server.call('/', { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/console']);
  });

  test('assets never change, and are sent packed to browsers that take them so', async () => {
    const plain = await server.call('/console/assets/index-B3x.js', { headers: { 'accept-encoding': 'identity' } });
    expect([plain.status, await plain.text()]).toEqual([200, 'let plain;']);
    expect(plain.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(plain.headers.get('content-type')).toMatch(/^(?:text|application)\/javascript/);
    expect(plain.headers.get('x-content-type-options')).toBe('nosniff');
    expect(plain.headers.get('access-control-allow-origin')).toBeNull();
    const packed = await server.call('/console/assets/index-B3x.js', {
      method: 'HEAD',
      headers: { 'accept-encoding': 'br' },
    });
    expect(packed.headers.get('content-encoding')).toBe('br');
    expect((await server.call('/console/assets/icons/logo-1a.svg')).headers.get('content-type')).toBe('image/svg+xml');
  });

  test.each([
    '/console/assets/nothing.js',
    '/console/assets/',
    '/console/assets',
    '/console/assets/.hidden',
    '/console/assets/../index.html',
    '/console/assets/..%2fsecret.txt',
    '/console/assets/%2e%2e/secret.txt',
    '/console/assets/%2fetc/passwd',
    '/consolex',
  ])('%s is 404, and never the index', async (path) => {
    const { port } = new URL(server.baseUrl);
    // As it is written: fetch would put `..` in order.
    const answer = await sendRaw(server.baseUrl, `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`);
    expect([400, 404], answer.body).toContain(answer.status);
    expect(answer.body).not.toContain('<base');
    expect(answer.body).not.toContain('not an asset');
  });

  test('what is no GET is 405', async () => {
    for (const method of ['POST', 'DELETE']) expect((await server.call('/console/x', { method })).status).toBe(405);
  });

  test('a tab learns by each answer whether a newer page is there', async () => {
    const versionOf = (html: string) => /console-version" content="(\w+)"/.exec(html)?.[1];
    const version = versionOf(await (await server.call('/console')).text());
    const browser = new Browser(server);
    const versionHeader = async () =>
      (await browser.call('/console/api/session')).headers.get('annals-console-version');
    expect(await versionHeader()).toBe(version);
    await writeFile(join(folder, 'index.html'), `${built}<!-- newer -->`);
    const newer = versionOf(await (await server.call('/console')).text());
    expect(newer).not.toBe(version);
    expect(await versionHeader()).toBe(newer);
    // While the page is rebuilt, the tabs that are open continue.
    await writeFile(join(folder, 'index.html'), '<!doctype html>');
    expect((await server.call('/console')).status).toBe(500);
    expect(await versionHeader()).toBeNull();
    await writeFile(join(folder, 'index.html'), built);
    expect(await versionHeader()).toBe(version);
  });
});

describe('behind a proxy', () => {
  // A proxy that leaves the path, and one that strips it.
  test.each(['/tools/annals', ''])('under "%s" every link carries the path', async (prefix) => {
    for (const path of ['/console', '/console/history/1']) {
      const html = await (await proxied.call(`${prefix}${path}`)).text();
      expect(html).toContain('<base href="/tools/annals/console/">');
    }
    expect((await proxied.call(`${prefix}/console/assets/index-B3x.js`)).status).toBe(200);
    expect((await proxied.call(`${prefix}/console/assets/none.js`)).status).toBe(404);
    const root = await proxied.call(prefix === '' ? '/' : prefix, { redirect: 'manual' });
    expect([root.status, root.headers.get('location')]).toEqual([302, '/tools/annals/console']);
  });

  test.each(['/tools/annals', ''])('under "%s" people sign in at the public name over TLS', async (prefix) => {
    const client = await proxied.createClient('behind');
    const browser = new Browser(proxied, { publicUrl, prefix });
    const begun = await browser.signIn(client);
    expect(begun.status).toBe(200);
    expect((await begun.json()) as ConsoleSession).toMatchObject({ tenant: 'behind' });
    expect(browser.setCookie).toMatch(
      /^__Secure-annals-[0-9a-f-]{36}=[\w-]+; Max-Age=28800; Path=\/tools\/annals\/console\/api; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect((await browser.call('/console/api/changelog/behind/changelogs')).status).toBe(200);
    const made = await browser.post('/console/api/schema/behind/custom-entities', {
      id: prefix === '' ? 'STRIPPED' : 'LEFT',
      name: { en: 'x' },
    });
    expect([made.status, made.headers.get('location')]).toEqual([
      201,
      expect.stringMatching(/^\/tools\/annals\/schema\//),
    ]);
    // The path is the public one, so it does not stand inside of another.
    expect((await browser.call('/console/api/tools/annals/changelog/behind/changelogs')).status).toBe(404);

    const elsewhere = new Browser(proxied, { prefix });
    elsewhere.cookie = browser.cookie;
    expect((await elsewhere.call('/console/api/session')).status).toBe(421);
    expect((await elsewhere.signIn(client)).status).toBe(421);
    const believed = await elsewhere.call('/console/api/session', {
      headers: { 'x-forwarded-host': 'shop.example.org' },
    });
    expect(believed.status).toBe(421);
  });

  test('without a path the cookie is of the host alone', async () => {
    const root = await startTestServer({
      database: server.database,
      environment: { ANNALS_BASE_URL: 'https://annals.example.org' },
    });
    const browser = new Browser(root, { publicUrl: 'https://annals.example.org' });
    expect((await browser.signIn(await root.createClient('behind'))).status).toBe(200);
    expect(browser.setCookie).toMatch(
      /^__Host-annals-[0-9a-f-]{36}=[\w-]+; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect((await browser.call('/console/api/session')).status).toBe(200);
    await root.close();
  });
});

test('over plain HTTP beyond this machine signing in is refused, unless a setting allows it', async () => {
  const plain = 'http://annals.internal:8080';
  const client = await server.createClient('plain');
  for (const [allowed, status] of [
    ['false', 403],
    ['true', 200],
  ] as const) {
    const environment = { ANNALS_BASE_URL: plain, ANNALS_CONSOLE_INSECURE: allowed };
    const insecure = await startTestServer({ database: server.database, environment });
    const browser = new Browser(insecure, { publicUrl: plain });
    const answer = await browser.signIn(client);
    expect(answer.status).toBe(status);
    if (status === 403) expect(await answer.text()).toContain('ANNALS_CONSOLE_INSECURE=true');
    else
      expect(browser.setCookie).toMatch(
        /^annals-[^;]+; Max-Age=28800; Path=\/console\/api; HttpOnly; SameSite=Strict$/,
      );
    await insecure.close();
  }
});

test('a page that was not built says what to run, and / leads to the reference', async () => {
  const unbuilt = await startTestServer({ consoleFolder: join(folder, 'nothing'), database: server.database });
  const page = await unbuilt.call('/console/history');
  expect([page.status, await page.json()]).toMatchObject([
    503,
    { type: 'service_unavailable', message: expect.stringContaining('npm run prepare') },
  ]);
  expect((await unbuilt.call('/console/assets/x.js')).status).toBe(404);
  expect((await unbuilt.call('/', { redirect: 'manual' })).headers.get('location')).toBe('/docs');
  const session = await new Browser(unbuilt).call('/console/api/session');
  expect([session.status, session.headers.get('annals-console-version')]).toEqual([401, null]);
  expect(unbuilt.logLines.filter((line) => line.includes('"level":"warn"'))).toEqual([
    expect.stringContaining('The page of the console is not built.'),
  ]);
  await unbuilt.close();
});
