import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'vite';

let folder: Promise<string> | undefined;

/** Builds the page from its sources, once for all tests of a process. Returns the folder, which ends with the process. */
export function buildConsole(): Promise<string> {
  folder ??= buildIntoFolder();
  return folder;
}

async function buildIntoFolder(): Promise<string> {
  const outDir = await mkdtemp(join(tmpdir(), 'annals-console-'));
  process.once('exit', () => rmSync(outDir, { recursive: true, force: true }));
  const root = join(import.meta.dirname, '..', '..');
  await build({
    root,
    configFile: join(root, 'vite.config.ts'),
    logLevel: 'warn',
    build: { outDir, manifest: true },
  });
  return outDir;
}
