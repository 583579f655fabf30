import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageSchema } from './read-schema.ts';

/** What versions of Annals without checksums may have left in a database. */
export interface Predecessors {
  /** The checksums of all forms that a migration had before it became final, by its file name. */
  migrations: Readonly<Record<string, readonly string[]>>;
  /** The signatures of all routines that those versions created. */
  routines: readonly string[];
}

// Their routines are in sql/ now, under the names of other migrations, and they created nothing else.
export const withdrawnMigrations: readonly string[] = ['0009-record-entries.sql', '0015-record-entries.sql'];

/** Reads the two lists of this package. */
export async function readPredecessors(): Promise<Predecessors> {
  const { migrations, routines } = packageSchema();
  return {
    migrations: JSON.parse(await readFile(join(migrations, 'predecessors.json'), 'utf8')),
    routines: JSON.parse(await readFile(join(routines, 'predecessors.json'), 'utf8')),
  };
}
