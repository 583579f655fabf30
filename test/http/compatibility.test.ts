import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestServer } from '../support/server/server.ts';

const server = closeAfterAll(await startTestServer());

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

test('each path that docs/compatibility.md says is missing is 404', async () => {
  const token = await server.token('acme');
  const document = await readFile('docs/compatibility.md', 'utf8');
  const [, section = ''] = document.split('## Missing operations');
  const paths = [...section.matchAll(/^\| (`\/.*?) \|/gm)].flatMap(([, cell = '']) => {
    const [first = '', ...others] = [...cell.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
    // What follows "…" stands below the service of the first path.
    const below = (path: string) => {
      const [root = ''] = path.split('/', 2);
      const [, member = ''] = path.slice(root.length).split('/', 2);
      return first.slice(0, first.indexOf(`/${member}`)) + path.slice(root.length);
    };
    return [first, ...others.map(below)];
  });
  expect(paths.length).toBeGreaterThan(30);
  for (const path of paths) {
    const filled = path.replace('{tenant}', 'acme').replaceAll(/\{\w+\}/g, 'x');
    expect(filled).toMatch(/^\/(ai-service|configuration|schema)\/acme\//);
    // A GET of these reads a document of that name.
    const methods = /\/(?:export|import|bulk)$/.test(path) ? ['POST'] : ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
    for (const method of methods) {
      const response = await server.call(filled, { token, method });
      expect([404, 405], `${method} ${filled}`).toContain(response.status);
    }
  }
});

test('docs/compatibility.md lists every member that is taken at its default alone', async () => {
  const guide = await readFile('docs/compatibility.md', 'utf8');
  const { components } = (await (await server.call('/openapi.json')).json()) as {
    components: { schemas: Record<string, { properties?: Record<string, { description?: string }> }> };
  };
  const members = Object.values(components.schemas).flatMap(({ properties = {} }) =>
    Object.entries(properties).flatMap(([name, { description = '' }]) =>
      description.startsWith('Not supported: it must') ? [name] : [],
    ),
  );
  expect(new Set(members).size).toBeGreaterThan(15);
  const [, table = ''] = guide.split('## Members that Annals does not do');
  for (const name of members) expect(table).toMatch(new RegExp(`^\\| [A-Z][^|]* \\| .*\\b${name}\\b`, 'm'));
});
