import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface Installed {
  folder: string;
  /** The Node that Directus asks for, and the search path that finds it first. */
  node: string;
  path: string;
}

/** Installs the load generator alone, in the version that Directus is loaded with. Returns its folder. */
export function installLoadGenerator(folder: string): string {
  const { dependencies } = JSON.parse(readFileSync(join(import.meta.dirname, 'package.json'), 'utf8'));
  if (existsSync(join(folder, 'node_modules', 'autocannon'))) return folder;
  mkdirSync(folder, { recursive: true });
  const description = { private: true, dependencies: { autocannon: dependencies.autocannon } };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(description));
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund'];
  if (spawnSync('npm', args, { cwd: folder, stdio: ['ignore', 2, 2] }).status !== 0) {
    throw new Error('npm cannot install autocannon');
  }
  return folder;
}

/**
 * Installs Directus and the load generator into a folder of their own, where they are not there yet. One native part
 * of Directus may have to be built here: its headers come with the Node beside it, so that a compiler is all it takes.
 */
export function installDirectus(folder: string): Installed {
  const home = join(folder, 'node_modules', `node-${process.platform}-${process.arch}`);
  const path = `${join(home, 'bin')}${delimiter}${process.env.PATH}`;
  const node = join(home, 'bin', 'node');
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(import.meta.dirname, 'package.json'), join(folder, 'package.json'));
  const run = (command: string, ...args: string[]) => {
    const { status } = spawnSync(command, args, {
      cwd: folder,
      stdio: ['ignore', 2, 2],
      env: { ...process.env, PATH: path },
    });
    return status === 0;
  };
  const works = () => existsSync(node) && run(node, '-e', "require('isolated-vm')");
  if (!existsSync(join(folder, 'node_modules', 'directus'))) {
    process.stderr.write('Directus is being installed; this takes minutes\n');
    if (!run('npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund'))
      throw new Error('npm cannot install Directus');
  }
  if (!works()) run('npm', 'rebuild', 'isolated-vm', `--nodedir=${home}`);
  if (!works()) throw new Error('the native part of Directus, isolated-vm, can be neither fetched nor built');
  return { folder, node, path };
}
