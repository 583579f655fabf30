// Builds the console and the viewer (console/dist, clients/viewer/dist) unless they are up to date.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { copyQueryText, filesIn, stateFile, stateOf, textOf } from './checkout.js';

const root = join(import.meta.dirname, '..');
const pages = ['console', 'clients/viewer'];
const folders = ['console/src', 'clients/viewer/src', 'clients/typescript/src', 'src/query', 'docs/site'];
// The types that `npm run generate` makes for the client become no code.
const sources = /(?<!openapi)\.(?:tsx?|css|html|svg)$/;
const files = ['console/index.html', 'console/client-aliases.ts', 'console/precompress.ts', 'package-lock.json'];

copyQueryText(root);
const settings = pages.map((page) => join(page, 'vite.config.ts'));
const state = stateOf(root, [...filesIn(root, folders, sources), ...files, ...settings]);
const stale = pages.filter((page) => textOf(join(root, page, 'dist', stateFile)) !== state);
if (stale.length > 0) {
  const { build } = await import('vite');
  for (const page of stale) {
    await build({ configFile: join(root, page, 'vite.config.ts'), logLevel: 'warn' });
    // Written last: where it exists, the page is complete.
    writeFileSync(join(root, page, 'dist', stateFile), state);
  }
}
