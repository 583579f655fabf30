import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { bundleOfCheckout, stateOfSources } from '../../../build/checkout.js';
import { packageFolder } from '../../../src/core/package-folder.ts';

const run = promisify(execFile);

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
  'clients/python/README.md',
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
  onTestFinished(async () => void (await run('rm', ['-r', folder])));
  return folder;
}

/**
 * Copies what a package is built from, with the bundle that the run has made; it shares the installed packages. Returns
 * the folder, which is removed when the test ends.
 */
export async function copyPackage(): Promise<string> {
  const folder = await temporaryFolder();
  // The times of the files too: by these the build knows whether the bundle is that of the sources.
  await run('cp', ['-a', '--parents', ...parts, folder], { cwd: packageFolder() });
  await copyBundle(join(folder, 'dist', 'checkout', stateOfSources(folder)));
  await linkModules(folder);
  return folder;
}

/**
 * Puts the files that npm would pack into a folder. npm sees empty files and no installed packages: compressing the
 * files and reading all packages takes seconds.
 */
export async function unpackPackage(source: string, target: string): Promise<void> {
  const names = await temporaryFolder();
  await run('cp', ['-r', '--no-dereference', '--attributes-only', `${source}/.`, names]);
  await rm(join(names, 'node_modules'));
  const rules = ['.', '(', '-name', 'package.json', '-o', '-name', '.*ignore', ')'];
  await run('find', [...rules, '-exec', 'cp', '--parents', '{}', names, ';'], { cwd: source });
  const pack = ['pack', '--dry-run', '--json', '--offline', '--ignore-scripts'];
  const { stdout } = await run('npm', pack, { cwd: names, maxBuffer: 1e8 });
  const [{ files }]: [{ files: { path: string }[] }] = JSON.parse(stdout);
  await run('cp', ['-a', '--parents', ...files.map(({ path }) => path), target], { cwd: source });
}

/** Makes a folder as the package is installed, to be run with other tables or routines. */
export async function installPackage(folder: string): Promise<void> {
  for (const part of ['bin', 'migrations', 'sql', 'schemas', 'docs', 'package.json']) {
    await cp(join(packageFolder(), part), join(folder, part), { recursive: true });
  }
  await copyBundle(join(folder, 'dist'));
  await linkModules(folder);
}

async function copyBundle(target: string): Promise<void> {
  const bundle = await bundleOfCheckout(packageFolder());
  await cp(bundle, target, { recursive: true, filter: (path) => basename(path) !== 'checkout' });
}

/** Lets a package find what this one has installed. */
export async function linkModules(folder: string): Promise<void> {
  await symlink(join(packageFolder(), 'node_modules'), join(folder, 'node_modules'));
}
