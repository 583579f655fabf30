import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageFolder } from '../../../src/core/package-folder.ts';

/**
 * Makes the pages once, before the browsers of the tests ask for them. A process of its own builds as an installation
 * does.
 */
export async function setup(): Promise<void> {
  const { NODE_ENV: _ofTests, ...env } = process.env;
  await promisify(execFile)(process.execPath, [join(packageFolder(), 'build', 'pages.ts')], { env });
}
