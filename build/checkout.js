// Plain JavaScript: every start in a checkout loads this file, and Node takes 30 ms for the first TypeScript.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Bundles of earlier sources to keep: a running service may load a chunk later. */
const keptBundles = 20;

/** The file of dist/ with the state of its sources. */
export const stateFile = 'sources';

/**
 * The folder with the bundle of a checkout's sources: `dist/` from the installation, or one that is built here if they have changed
 * since. It is named by their state and appears atomically, so processes that start at once do not interfere.
 *
 * @param {string} root the folder of the checkout
 */
export async function bundleOfCheckout(root) {
  const state = stateOfSources(root);
  const installed = join(root, 'dist');
  if (textOf(join(installed, stateFile)) === state) return installed;
  const bundles = join(installed, 'checkout');
  const folder = join(bundles, state);
  if (existsSync(folder)) return folder;
  const { bundle } = await import('./bundle.ts');
  mkdirSync(bundles, { recursive: true });
  const unfinished = `${folder}-${process.pid}`;
  await bundle(root, unfinished);
  try {
    renameSync(unfinished, folder);
  } catch (error) {
    // Another process was first.
    if (!existsSync(folder)) throw error;
    rmSync(unfinished, { recursive: true });
  }
  removeOldest(bundles);
  return folder;
}

/** @param {string} file */
export function textOf(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

/**
 * A name for the state of what a bundle is made from.
 *
 * @param {string} root
 */
export function stateOfSources(root) {
  return stateOf(root, [...filesIn(root, ['src', 'build'], /\.[jt]s$/), 'package-lock.json']);
}

/**
 * A name for the state of files: their paths, sizes and times.
 *
 * @param {string} root
 * @param {string[]} files
 */
export function stateOf(root, files) {
  const hash = createHash('sha256');
  for (const file of files) {
    const { size, mtimeMs } = statSync(join(root, file));
    hash.update(`${file} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}

/**
 * The files of folders, however deep, whose names match.
 *
 * @param {string} root
 * @param {string[]} folders
 * @param {RegExp} pattern
 */
export function filesIn(root, folders, pattern) {
  return folders.flatMap((folder) => {
    const files = readdirSync(join(root, folder), { recursive: true });
    return files
      .filter((file) => pattern.test(file))
      .map((file) => join(folder, file))
      .sort();
  });
}

/**
 * Copies how queries are written into the client, whose package must not need the service.
 *
 * @param {string} root
 */
export function copyQueryText(root) {
  const text = readFileSync(join(root, 'src', 'query', 'written.ts'), 'utf8');
  const copy = join(root, 'clients', 'typescript', 'src', 'query', 'written.ts');
  if (textOf(copy) !== text) writeFileSync(copy, text);
}

function removeOldest(bundles) {
  const made = readdirSync(bundles).map((name) => ({ name, at: statSync(join(bundles, name)).mtimeMs }));
  made.sort((one, other) => other.at - one.at);
  for (const { name } of made.slice(keptBundles)) rmSync(join(bundles, name), { recursive: true, force: true });
}
