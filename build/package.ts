// Makes dist/: the bundle, and the licences of what is in it. A checkout uses this one until a source changes.
import { globSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundle, bundleVerifier } from './bundle.ts';
import { stateFile, stateOfSources } from './checkout.js';
import { licences } from './licences.ts';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'dist');
const state = stateOfSources(root);
for (const file of [stateFile, ...globSync('*.*', { cwd: folder })]) rmSync(join(folder, file), { force: true });
const files = await bundle(root, folder);
await bundleVerifier(root, folder);
writeFileSync(join(folder, 'licences.txt'), licences(files.flatMap(({ moduleIds }) => moduleIds)));
// As the last one: where it is, the bundle is whole.
writeFileSync(join(folder, stateFile), state);
