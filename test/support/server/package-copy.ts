import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { packageFolder } from '../../../src/package-folder.ts';

// What a package is built from, and what stands in it.
const parts = [
  'bin',
  'src',
  'migrations',
  'sql',
  'schemas',
  'docs',
  'examples',
  'clients/typescript/README.md',
  'clients/typescript/src',
  'console/client-aliases.ts',
  'console/index.html',
  'console/package.json',
  'console/precompress.ts',
  'console/src',
  'console/tsconfig.json',
  'console/vite.config.ts',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'LICENSE',
];

/** A folder of its own, removed when the test ends. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'annals-package-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Copies this package to be edited, built or run; it shares the installed packages. Returns the folder, which is removed
 * when the test ends unless the caller gives one.
 */
export async function copyPackage(given?: string): Promise<string> {
  const folder = given ?? (await temporaryFolder());
  for (const part of parts) await cp(join(packageFolder(), part), join(folder, part), { recursive: true });
  await linkModules(folder);
  return folder;
}

/** Lets a package find what this one has installed. */
export async function linkModules(folder: string): Promise<void> {
  await symlink(join(packageFolder(), 'node_modules'), join(folder, 'node_modules'));
}
