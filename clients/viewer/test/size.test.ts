import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { builtViewer } from './support/build.ts';

test('the component takes at most 40 KiB compressed, calls nothing elsewhere, and keeps nothing', async () => {
  const text = await readFile(builtViewer, 'utf8');
  expect(gzipSync(text).byteLength).toBeLessThanOrEqual(40 * 1_024);
  expect(text).not.toMatch(
    /localStorage|sessionStorage|indexedDB|document\.cookie|insertAdjacentHTML|\beval\(|new Function/,
  );
  // Names of XML, which nobody calls.
  const addresses = [...text.matchAll(/https?:\/\/[^"'`\s)]+/g)].map(([address]) => address);
  expect(addresses.filter((address) => !address.startsWith('http://www.w3.org/'))).toEqual([]);
  // As a module and as a script.
  expect(text).not.toMatch(/^(?:import|export)\b/m);
});
