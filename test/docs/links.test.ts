import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { renderGuide } from '../../src/http/openapi/guides.ts';

const root = join(import.meta.dirname, '../..');
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
})
  .trim()
  .split('\n')
  .filter((file) => existsSync(join(root, file)));

/** The ids of the headings of a page, and where its links and images lead. */
async function read(file: string): Promise<{ ids: Set<string>; links: string[] }> {
  const links: string[] = [];
  const { html } = await renderGuide(readFileSync(join(root, file), 'utf8'), (href) => {
    links.push(href);
    return href;
  });
  return { ids: new Set([...html.matchAll(/<h\d id="([^"]+)"/g)].map(([, id = '']) => id)), links };
}

const pages = new Map(await Promise.all(files.map(async (file) => [file, await read(file)] as const)));

test('every page of the repository is read', () => {
  expect(files).toEqual(expect.arrayContaining(['README.md', 'docs/operations.md', 'docs/operations/backup.md']));
});

test.each(files)('the links of %s lead to files and headings that are there', (file) => {
  const broken = pages.get(file)?.links.filter((href) => {
    if (/^(?:https?:|mailto:)/.test(href)) return false;
    const [path = '', heading] = href.split('#');
    const target = path === '' ? file : relative(root, join(root, dirname(file), decodeURIComponent(path)));
    if (!existsSync(join(root, target))) return true;
    if (heading === undefined || statSync(join(root, target)).isDirectory()) return heading !== undefined;
    return !pages.get(target)?.ids.has(heading);
  });
  expect(broken).toEqual([]);
});
