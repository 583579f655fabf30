import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../../core/operator-error.ts';
import { packageFolder } from '../../core/package-folder.ts';
import { type Migration, readMigrations } from './migrations.ts';
import { hashRoutines, type Routine, type RoutineForm, readRoutines } from './routines.ts';
import { createForShard, isForShards, preferShardRoutine } from './shard-routines.ts';

/** The folders of a schema. */
export interface SchemaFolders {
  migrations: string;
  routines: string;
}

/** The schema that a version of Annals needs. */
export interface Schema {
  migrations: readonly Migration[];
  /** The number of the last migration; 0 if there is none. */
  newest: number;
  routines: readonly Routine[];
  /** What each shard of a cluster gets for itself, as it is on one server. One server has none. */
  shardRoutines: readonly Routine[];
  /** Grows with every release whose routines differ from those of the last release. */
  routinesVersion: number;
  routinesHash: string;
}

/** The folders of this package. */
export function packageSchema(): SchemaFolders {
  return { migrations: join(packageFolder(), 'migrations'), routines: join(packageFolder(), 'sql') };
}

const ofPackage = new Map<RoutineForm, Promise<Schema>>();

/** The schema of this package. A process reads it once, because the files of a package do not change below it. */
export async function readPackageSchema(form: RoutineForm = 'single'): Promise<Schema> {
  return await ofPackage.getOrInsertComputed(form, () => readSchema(packageSchema(), form));
}

/** Reads both folders. Throws an OperatorError if a file is not valid. */
export async function readSchema(folders: SchemaFolders, form: RoutineForm = 'single'): Promise<Schema> {
  const migrations = await readMigrations(folders.migrations);
  const written = await readRoutines(folders.routines, form);
  const routines = form === 'single' ? written : written.map(preferShardRoutine);
  const shardRoutines = form === 'single' ? [] : (await readRoutines(folders.routines, 'shard')).filter(isForShards);
  const version = (await readFile(join(folders.routines, 'version.txt'), 'utf8')).trim();
  if (!/^[1-9]\d{0,8}$/.test(version)) throw new OperatorError(`sql/version.txt has no whole number in it: ${version}`);
  return {
    migrations,
    newest: migrations.at(-1)?.number ?? 0,
    routines,
    shardRoutines,
    routinesVersion: Number(version),
    routinesHash: hashRoutines([...routines, ...shardRoutines.map((routine) => createdFor(routine, shardRoutines))]),
  };
}

/** What a database gets is part of the hash, so that a change of how routines are made for shards changes it too. */
function createdFor(routine: Routine, all: readonly Routine[]): Routine {
  return { ...routine, text: createForShard(routine, all, { schema: '', tables: new Map() }) };
}
