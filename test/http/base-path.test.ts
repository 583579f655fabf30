import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ownSegments, readConfig } from '../../src/core/config/config.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestServer } from '../support/server/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const publicUrl = 'https://shop.example.org/tools/annals';
const tenant = 'behind';
const folder = temporaryFolder();
await writeFile(join(folder, 'index.html'), '<!doctype html><base href="/console/">');
const server = closeAfterAll(
  await startTestServer({ environment: { ANNALS_BASE_URL: publicUrl }, consoleFolder: folder }),
);
const token = await server.token(tenant);

/** The links of pages that have answered. */
const answered = new Set<string>();

// A proxy that leaves the path, and one that strips it.
describe.each(['/tools/annals', ''])('under "%s"', (prefix) => {
  const types = `${prefix}/schema/${tenant}/custom-entities`;

  test('a Location leads below the public address, and answers', async () => {
    const id = prefix === '' ? 'STRIPPED' : 'LEFT';
    const made = await server.call(types, { token, json: { id, name: { en: 'x' } } });
    expect(made.status).toBe(201);
    expect(made.headers.get('location')).toBe(`/tools/annals/schema/${tenant}/custom-entities/${id}`);
    const shown = await server.call(`${types}/${id}`, { token });
    expect(await shown.json()).toMatchObject({ id });
    expect((await server.call(made.headers.get('location') ?? '', { token })).status).toBe(200);
  });

  test('the order of checks holds', async () => {
    expect((await server.call(`${prefix}/changelog/${tenant}/changelogs`)).status).toBe(401);
    expect((await server.call(`${prefix}/changelog/%zz/changelogs`, { token })).status).toBe(400);
    expect((await server.call(`${prefix}/changelog/another/changelogs`, { token })).status).toBe(403);
    expect((await server.call(`${prefix}/nothing`)).status).toBe(404);
  });

  test('the query string stays', async () => {
    const refused = await server.call(`${prefix}/changelog/${tenant}/changelogs?page=0`, { token });
    expect(await refused.json()).toMatchObject({ message: 'page must be >= 1' });
  });

  test('the document names the public address and its token endpoint', async () => {
    const document = await (await server.call(`${prefix}/openapi.json`)).json();
    expect(document).toMatchObject({
      servers: [{ url: publicUrl }],
      components: {
        securitySchemes: { oauth2: { flows: { clientCredentials: { tokenUrl: '/tools/annals/oauth/token' } } } },
      },
    });
  });

  test('every link and file of the pages carries the path, and answers', async () => {
    const root = await server.call(prefix === '' ? '/' : prefix, { redirect: 'manual' });
    expect([root.status, root.headers.get('location')]).toEqual([302, '/tools/annals/console']);
    for (const page of ['/docs', '/docs/', '/docs/guides', '/docs/guides/', '/docs/guides/operations']) {
      const answer = await server.call(`${prefix}${page}`);
      expect(answer.status, page).toBe(200);
      const links = [...(await answer.text()).matchAll(/(?:src|href|data-document)="([^"]+)"/g)].map(
        ([, link = '']) => link,
      );
      expect(links.length).toBeGreaterThan(3);
      for (const link of new Set(links.filter((path) => !/^(?:#|https?:)/.test(path)))) {
        expect(link).toMatch(/^\/tools\/annals\//);
        if (!answered.has(link)) expect((await server.call(link)).status, link).toBe(200);
        answered.add(link);
      }
    }
  });

  test('a token is issued by the public address', async () => {
    const { clientId, clientSecret } = await server.createClient(tenant);
    const body = new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
    });
    const answer = await server.call(`${prefix}/oauth/token`, { method: 'POST', body });
    const { access_token: issued } = (await answer.json()) as { access_token: string };
    const payload = JSON.parse(Buffer.from(issued.split('.')[1] ?? '', 'base64url').toString()) as { iss: string };
    expect(payload.iss).toBe(publicUrl);
    expect((await server.call(`${prefix}/changelog/${tenant}/changelogs`, { token: issued })).status).toBe(200);
  });
});

test('health is not under the public address', async () => {
  expect((await server.call('/health/live')).status).toBe(200);
  expect((await server.call('/tools/annals/health/live')).status).toBe(404);
});

test('a path that only begins alike is another one', async () => {
  expect((await server.call('/tools/annalsx/openapi.json')).status).toBe(404);
});

test('the path of the public address cannot begin as one of the service', () => {
  for (const segment of ownSegments) {
    expect(() => readConfig({ ANNALS_BASE_URL: `https://x.example/${segment}/more` })).toThrow(`/${segment}`);
  }
  expect(readConfig({ ANNALS_BASE_URL: 'https://x.example/document/' }).baseUrl).toBe('https://x.example/document');
});

test('every first part of a path is known to the settings', async () => {
  const { paths } = (await (await server.call('/openapi.json')).json()) as { paths: Record<string, unknown> };
  const segments = new Set(Object.keys(paths).map((path) => path.split('/')[1]));
  expect(segments.size).toBeGreaterThan(5);
  for (const segment of [...segments, 'docs', 'openapi.json']) expect(ownSegments).toContain(segment);
});
