import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { bundleOfCheckout } from '../../../build/checkout.js';
import { packageFolder } from '../../../src/core/package-folder.ts';

// What a package is built from, and what stands in it. The run has built the pages.
const parts = [
  'bin',
  'build',
  'src',
  'migrations',
  'sql',
  'schemas',
  'demo',
  'deploy/grafana',
  'deploy/prometheus',
  'docs',
  'examples',
  'clients/typescript/README.md',
  'clients/viewer/README.md',
  'clients/viewer/dist',
  'console/dist',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
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

/** Copies what a package is built from; it shares the installed packages. Returns the folder, which is removed when the test ends. */
export async function copyPackage(): Promise<string> {
  const folder = await temporaryFolder();
  for (const part of parts) await cp(join(packageFolder(), part), join(folder, part), { recursive: true });
  await linkModules(folder);
  return folder;
}

/** Makes a folder as the package is installed, to be run with other tables or routines. */
export async function installPackage(folder: string): Promise<void> {
  for (const part of ['bin', 'migrations', 'sql', 'schemas', 'docs', 'package.json']) {
    await cp(join(packageFolder(), part), join(folder, part), { recursive: true });
  }
  const bundle = await bundleOfCheckout(packageFolder());
  await cp(bundle, join(folder, 'dist'), { recursive: true, filter: (path) => basename(path) !== 'checkout' });
  await linkModules(folder);
}

/** Lets a package find what this one has installed. */
export async function linkModules(folder: string): Promise<void> {
  await symlink(join(packageFolder(), 'node_modules'), join(folder, 'node_modules'));
}
