import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Manifest, ManifestChunk } from 'vite';
import { expect, test } from 'vitest';
import { builtConsole } from './support/built-console.ts';

const firstPageLimit = 80 * 1_024;
const wholeLimit = 300 * 1_024;

test('the first page needs at most 80 KiB, and all pages together at most 300 KiB', async () => {
  const manifest: Manifest = JSON.parse(await readFile(join(builtConsole, '.vite', 'manifest.json'), 'utf8'));
  const size = async (file: string) => gzipSync(await readFile(join(builtConsole, file))).byteLength;
  const sizeOfAll = async (files: Iterable<string>) =>
    (await Promise.all([...new Set(files)].map(size))).reduce((sum, inner) => sum + inner, 0);

  // The manifest leaves out the code of threads.
  const all = (await readdir(join(builtConsole, 'assets')))
    .filter((file) => !/\.(br|gz)$/.test(file))
    .map((file) => join('assets', file));
  expect(all).toEqual(expect.arrayContaining([...new Set(Object.values(manifest).flatMap(filesOf))]));
  const whole = await sizeOfAll([...all, 'index.html']);
  expect(whole).toBeLessThanOrEqual(wholeLimit);

  // Which page comes first depends on the scopes of the session.
  const pages = Object.entries(manifest).filter(([name]) => /-page\.tsx$/.test(name));
  expect(pages.length).toBeGreaterThan(0);
  const start = manifest['index.html'];
  for (const [name, page] of pages) {
    const files = [start, page].flatMap((chunk) => (chunk === undefined ? [] : withImports(manifest, chunk)));
    expect(await sizeOfAll([...files, 'index.html']), name).toBeLessThanOrEqual(firstPageLimit);
  }
});

test('nothing in the page is at an address elsewhere or needs what the policy forbids', async () => {
  const index = await readFile(join(builtConsole, 'index.html'), 'utf8');
  expect(index.match(/<base href="\/console\/">/g)).toHaveLength(1);
  for (const [, address] of index.matchAll(/(?:src|href)="([^"]*)"/g)) {
    expect(address === '/console/' || address?.startsWith('./assets/'), address).toBe(true);
  }
  expect(index).not.toMatch(/<style|<script(?![^>]* src=)| style=| on\w+=/);
});

function filesOf({ file, css = [], assets = [] }: ManifestChunk): string[] {
  return [file, ...css, ...assets];
}

function withImports(manifest: Manifest, chunk: ManifestChunk, seen = new Set<ManifestChunk>()): string[] {
  if (seen.has(chunk)) return [];
  seen.add(chunk);
  const imported = (chunk.imports ?? []).flatMap((name) => manifest[name] ?? []);
  return [...filesOf(chunk), ...imported.flatMap((inner) => withImports(manifest, inner, seen))];
}
