import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** One function, procedure or aggregate of the database, with the text that creates it. */
export interface Routine {
  /** The name in the database, which is the name of the file as well. */
  name: string;
  /** The file, from the folder of routines on: `changelog/change_rank.sql`. */
  file: string;
  text: string;
  /** Whether indexes or columns use it, so that its answers must never change: it stands in a folder `indexed`. */
  indexed: boolean;
}

/** Reads all routines below a folder, in the order of their files. Throws where two have the same name. */
export async function readRoutines(folder: string): Promise<Routine[]> {
  const routines: Routine[] = [];
  for (const file of (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.sql')).sort()) {
    const name = basename(file, '.sql');
    const twin = routines.find((other) => other.name === name);
    if (twin !== undefined) throw new Error(`${file} and ${twin.file} are routines of the same name`);
    const text = await readFile(join(folder, file), 'utf8');
    routines.push({ name, file, text, indexed: basename(dirname(file)) === 'indexed' });
  }
  return routines;
}

/** A hash of what a routine or a set of routines is made of; equal where and only where names and texts are. */
export function hashRoutines(routines: Routine[]): string {
  const hash = createHash('sha256');
  for (const { name, text } of routines) hash.update(`${name}\0${text}\0`);
  return hash.digest('hex');
}
