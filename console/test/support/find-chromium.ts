import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The package whose browser npm installs. It is built for one platform. */
export const chromiumPackage = join(import.meta.dirname, '..', '..', '..', 'node_modules', '@sparticuz', 'chromium');

/** Which browser can run here: that of `CHROMIUM_PATH`, that of npm, or none. */
export function findChromium(): 'given' | 'installed' | undefined {
  if (process.env.CHROMIUM_PATH !== undefined) return 'given';
  const runs = process.platform === 'linux' && process.arch === 'x64';
  return runs && existsSync(join(chromiumPackage, 'bin', 'chromium.br')) ? 'installed' : undefined;
}
