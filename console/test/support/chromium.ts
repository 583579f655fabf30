import { readFileSync } from 'node:fs';
import { access, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { chromiumPackage } from './find-chromium.ts';

/** V8 makes machine code at the first call of a function, and none that is faster. */
const withoutOptimizing = '--js-flags=--always-sparkplug --no-maglev --no-turbofan';

interface ChromiumOptions {
  /**
   * Whether code that runs often becomes faster, as for readers; left out: yes. Pages that live for a test end before it pays: the
   * compilers took a fifth of the processor time of the pages.
   */
  readonly optimizes?: boolean;
}

/** Starts Chromium: that of CHROMIUM_PATH, or the one that npm installs, unpacked at its first use. */
export async function startChromium({ optimizes = true }: ChromiumOptions = {}): Promise<Browser> {
  // Root, as in a container, may not use Chromium's sandbox. The pages are our own, and one process shows them all: a new
  // one for each page that is opened takes a fifth of the browser's processor time.
  const args = ['--no-sandbox', '--disable-gpu', '--renderer-process-limit=1', '--process-per-site'];
  if (!optimizes) args.push(withoutOptimizing);
  const path = process.env.CHROMIUM_PATH;
  if (path !== undefined) return await chromium.launch({ executablePath: path, args });
  const folder = await unpacked();
  return await chromium.launch({
    executablePath: join(folder, 'chromium'),
    args,
    env: {
      ...process.env,
      LD_LIBRARY_PATH: join(folder, 'al2023', 'lib'),
      FONTCONFIG_FILE: join(folder, 'fonts.conf'),
    },
  });
}

/** The folder with the browser, its libraries and its fonts; kept beside the packages for later runs. */
async function unpacked(): Promise<string> {
  const { version }: { version: string } = JSON.parse(readFileSync(join(chromiumPackage, 'package.json'), 'utf8'));
  const cache = join(chromiumPackage, '..', '..', '.cache');
  const folder = join(cache, `chromium-${version}`);
  if (await isThere(folder)) return folder;
  const unfinished = `${folder}-${process.pid}`;
  await mkdir(unfinished, { recursive: true });
  await inflateInto(unfinished, ['chromium.br', 'al2023.tar.br', 'fonts.tar.br']);
  // The fonts of the package, and those of the machine for scripts that it has none for.
  await writeFile(
    join(unfinished, 'fonts.conf'),
    `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><dir>${join(folder, 'fonts')}</dir><dir>/usr/share/fonts</dir><cachedir>${join(folder, 'fonts-cache')}</cachedir></fontconfig>`,
  );
  // Two processes may unpack at once: the first to finish wins.
  await rename(unfinished, folder).catch(() => rm(unfinished, { recursive: true, force: true }));
  return folder;
}

/** The package unpacks into the folder for temporary files, whose name it reads when it is called. */
async function inflateInto(folder: string, files: readonly string[]): Promise<void> {
  const { inflate } = await import('@sparticuz/chromium');
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  const unpacking = files.map((file) => inflate(join(chromiumPackage, 'bin', file)));
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
  await Promise.all(unpacking);
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
