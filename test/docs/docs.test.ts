import { expect, test } from 'vitest';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startTestServer } from '../support/server/server.ts';

const server = closeAfterAll(await startTestServer());

interface Page {
  html: string;
  links: string[];
  policy: string;
}

const pagesRead = new Map<string, Promise<Page>>();

/** Each page is read once for all tests. */
function page(path: string): Promise<Page> {
  const read = pagesRead.get(path) ?? readPage(path);
  pagesRead.set(path, read);
  return read;
}

async function readPage(path: string): Promise<Page> {
  const answer = await server.call(path);
  expect(answer.status, path).toBe(200);
  expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
  const html = await answer.text();
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = '']) => link);
  return { html, links, policy: answer.headers.get('content-security-policy') ?? '' };
}

test('the reference shows the document with files of this server alone, under our name', async () => {
  const { html, links, policy } = await page('/docs');
  expect(html).toContain('data-document="/openapi.json"');
  expect(html).toContain('<title>API reference · Annals</title>');
  expect(html).not.toMatch(/swagger ui|smartbear/i);
  expect(links).toContain('/docs/guides');
  for (const link of links) {
    expect(link).toMatch(/^\//);
    const answer = await server.call(link);
    expect(answer.status, link).toBe(200);
    const text = await answer.text();
    if (link.endsWith('.css')) expect(text).not.toMatch(/@import|url\(["']?https?:/);
  }
  // The policy lets the browser ask no other server and run no script that stands in the page.
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/https?:|\*|unsafe/);
  expect(html).not.toMatch(/<script>|<style|style="|onload=/);
});

test('only the two files of the viewer that the page needs are served', async () => {
  expect((await server.call('/docs/viewer/swagger-ui.js')).status).toBe(404);
  expect((await server.call('/docs/viewer/../package.json')).status).toBe(404);
});

test('every guide of the folder is listed and shown, and its links lead to pages and headings that are there', async () => {
  const { links } = await page('/docs/guides');
  const guides = links.filter((link) => link.startsWith('/docs/guides/'));
  expect(guides.length).toBeGreaterThan(20);
  expect(guides).toContain('/docs/guides/query-language');
  // The index of the records comes first among them.
  const [index, record] = ['decisions/README', 'decisions/access'].map((name) =>
    guides.indexOf(`/docs/guides/${name}`),
  );
  expect(index).toBe((record ?? 0) - 1);
  const pages = new Map(await Promise.all(guides.map(async (path) => [path, await page(path)] as const)));
  for (const [path, { html, links: inside, policy }] of pages) {
    expect(html).toMatch(/<h1 id="[^"]+">.+<\/h1>/);
    expect(policy).not.toContain('unsafe');
    for (const link of inside) {
      const [target = '', heading] = link.split('#');
      if (/^https?:/.test(target)) continue;
      if (target !== '' && !target.startsWith('/docs/guides/')) continue;
      const type = /\.svg$/.test(target) ? 'image/svg+xml' : /\.png$/.test(target) ? 'image/png' : undefined;
      if (type !== undefined) {
        const image = await server.call(target);
        expect([image.status, image.headers.get('content-type')], link).toEqual([200, type]);
        continue;
      }
      const shown = target === '' ? html : pages.get(target)?.html;
      expect(shown, `${path} has a link to ${link}`).toBeDefined();
      if (heading !== undefined) expect(shown, `${path} has a link to ${link}`).toContain(`id="${heading}"`);
    }
  }
});

test('the guides of a folder follow the page that leads to them', async () => {
  const { links } = await page('/docs/guides');
  const after = (guide: string, count: number) =>
    links
      .slice(links.indexOf(guide))
      .slice(0, count + 1)
      .map((link) => link.replace('/docs/guides/', ''));
  expect(after('/docs/guides/operations', 2)).toEqual(['operations', 'operations/ai-desk', 'operations/backup']);
  expect(after('/docs/guides/recording/README', 2)).toEqual([
    'recording/README',
    'recording/capture',
    'recording/child-tables',
  ]);
});

test('every guide has a purpose in the list, and every section is in the index of the search', async () => {
  const { html } = await page('/docs/guides');
  expect(html).not.toContain('<h2>More</h2>');
  const answer = await server.call('/docs/guides/search.json');
  expect(answer.status).toBe(200);
  const sections = (await answer.json()) as { path: string; id: string; heading: string; text: string }[];
  const paths = [...new Set(sections.map(({ path }) => path))];
  expect(paths.length).toBeGreaterThan(50);
  for (const path of paths) {
    const shown = await page(path);
    const ids = [...shown.html.matchAll(/<h\d id="([^"]+)"/g)].map(([, id]) => id);
    expect(sections.filter((section) => section.path === path).map(({ id }) => id)).toEqual(ids);
  }
  expect(sections.find(({ path, id }) => path.endsWith('/install') && id === 'what-npm-says')?.text).toContain(
    'npm rebuild node',
  );
});

test('a guide that is not there is 404, and nothing outside of the folder is shown', async () => {
  for (const name of ['nothing', '..%2f..%2fpackage', '%2e%2e/README', 'site/style', 'decisions']) {
    expect((await server.call(`/docs/guides/${name}`)).status, name).toBe(404);
  }
});
