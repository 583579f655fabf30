// Builds dist/: the bundle and the licences of its content. A checkout uses it until a source changes.
import { cpSync, existsSync, globSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bundle, bundleVerifier } from './bundle.ts';
import { stateFile, stateOfSources } from './checkout.js';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'dist');
const state = stateOfSources(root);
for (const file of [stateFile, ...globSync('*.*', { cwd: folder })]) rmSync(join(folder, file), { force: true });
// A start from the checkout may have built the bundle of these sources.
const made = join(folder, 'checkout', state);
if (existsSync(made)) cpSync(made, folder, { recursive: true });
else await bundle(root, folder);
await bundleVerifier(root, folder);
// Written last: where it exists, the bundle is complete.
writeFileSync(join(folder, stateFile), state);
