import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestServer, type TestServer } from '../support/server/server.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
});

afterAll(() => server.close());

test('docs/compatibility.md lists 40 operations, each once, and the service has them all', async () => {
  const document = await readFile('docs/compatibility.md', 'utf8');
  const listed = [...document.matchAll(/^\| `([A-Z]+) (\/\S+)` \|/gm)].map(([, method, path]) => `${method} ${path}`);
  expect(listed).toHaveLength(40);
  expect(new Set(listed).size).toBe(40);
  const { paths } = (await (await server.call('/openapi.json')).json()) as { paths: Record<string, object> };
  const described = Object.entries(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(described).toEqual(expect.arrayContaining(listed));
});
