import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hasCode } from './errors.ts';

/** The program's files were replaced while it ran: another version was installed over it. */
export class ProgramReplaced extends Error {
  constructor(cause: unknown) {
    super(
      'The files of Annals were replaced or removed while it ran. Restart it: a part of it can no longer be loaded.',
      {
        cause,
      },
    );
    this.name = 'ProgramReplaced';
  }
}

/**
 * Loads a part of the program that many processes never need. Throws ProgramReplaced if its file is gone.
 *
 * @example
 * const { createTransport } = await loadPart(() => import('nodemailer'));
 */
export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
  try {
    return await load();
  } catch (error) {
    const isGone = hasCode(error, 'ERR_MODULE_NOT_FOUND');
    throw isGone ? new ProgramReplaced(error) : error;
  }
}

/** The folder of this package, found upwards from here: from src in a checkout, or from dist when published. */
export function packageFolder(): string {
  found ??= findPackageFolder();
  return found;
}

let found: string | undefined;

function findPackageFolder(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error(`no package.json above ${import.meta.dirname}`);
    folder = parent;
  }
  return folder;
}

/** The version in package.json. */
export function productVersion(): string {
  const { version }: { version: string } = JSON.parse(readFileSync(join(packageFolder(), 'package.json'), 'utf8'));
  return version;
}
