import { copyFile, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { bundleOfCheckout } from '../../../build/checkout.js';
import { packageFolder } from '../../../src/core/package-folder.ts';

/**
 * Makes the bundle once, before the processes that the tests start look for it. The launcher of a checkout compares
 * some thousand sources with it, which takes a third of the start; the copy stands where there are no sources.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const root = packageFolder();
  const folder = await mkdtemp(join(tmpdir(), 'annals-run-'));
  const launcher = join(folder, 'bin', 'annals.js');
  await mkdir(join(folder, 'bin'));
  await copyFile(join(root, 'bin', 'annals.js'), launcher);
  await copyFile(join(root, 'package.json'), join(folder, 'package.json'));
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const bundle = join(folder, 'dist');
  await symlink(await bundleOfCheckout(root), bundle);
  project.onTestsRerun(async () => {
    await rm(bundle);
    await symlink(await bundleOfCheckout(root), bundle);
  });
  process.env.ANNALS_LAUNCHER_OF_RUN = launcher;
  return () => rm(folder, { recursive: true });
}
