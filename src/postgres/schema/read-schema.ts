import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { OperatorError } from '../../core/errors.ts';
import { packageFolder } from '../../core/package-folder.ts';
import { createForShard, isForShards, preferShardRoutine } from './shard-routines.ts';

/** One function, procedure or aggregate of the database, with the text that creates it. */
export interface Routine {
  /** The name in the database, which is also the name of the file. */
  name: string;
  kind: 'function' | 'procedure' | 'aggregate';
  /** The path of the file inside the folder of routines: `changelog/change_total.sql`. */
  file: string;
  text: string;
  /** Whether indexes or columns may use it: its folder is named `indexed`. */
  indexed: boolean;
}

// How a file begins, after its comments. The name includes the schema (:"schema".name), so that an index finds the
// routine too: the search path of an index build has nothing of ours in it.
const beginning = /^(?:--[^\n]*\n|\s*\n)*create (function|procedure|aggregate) (?::"schema"\.)?([a-z_][a-z0-9_]*)\s*\(/;

/**
 * The form of the routines: for one server, for a cluster whose workers have the tenants (docs/decisions/cluster.md), or for the tables of one
 * shard, which are to a worker as those of one server (docs/decisions/cluster.md).
 */
type RoutineForm = 'single' | 'distributed' | 'shard';

/**
 * Reads all routines below a folder. A routine that a cluster refuses, or answers otherwise, has a second form in a folder
 * `distributed`; routines for a cluster alone stand there too. Throws an OperatorError if a routine is not valid.
 */
export async function readRoutines(folder: string, form: RoutineForm = 'single'): Promise<Routine[]> {
  const all = readAllRoutines(folder);
  const isSecond = ({ file }: Routine) => basename(dirname(file)) === 'distributed';
  const second = all.filter(isSecond);
  const first = all.filter((routine) => !isSecond(routine));
  if (form === 'single') return first;
  const missing = (from: Routine[], names: Routine[]) =>
    from.filter(({ name }) => !names.some((one) => one.name === name));
  if (form === 'shard') return [...first, ...missing(second, first)];
  return [...missing(first, second), ...second].map(withoutKeptPlans);
}

/** A cluster cannot plan a statement before it knows the tenant, and so refuses plans that serve all tenants. */
function withoutKeptPlans(routine: Routine): Routine {
  return { ...routine, text: routine.text.replaceAll('set plan_cache_mode = force_generic_plan', '') };
}

/** To read hundreds of small files without waiting takes a fifth of the processor time. */
function readAllRoutines(folder: string): Routine[] {
  const routines: Routine[] = [];
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.sql'))
    .sort()) {
    const text = readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n');
    const name = basename(file, '.sql');
    const [, kind, created] = beginning.exec(text) ?? [];
    if ((kind !== 'function' && kind !== 'procedure' && kind !== 'aggregate') || created !== name) {
      throw new OperatorError(`sql/${file} does not begin with "create function ${name}(", or procedure, or aggregate`);
    }
    const formOf = (path: string) => basename(dirname(path)) === 'distributed';
    const twin = routines.find((other) => other.name === name && formOf(other.file) === formOf(file));
    if (twin !== undefined) throw new OperatorError(`sql/${file} and sql/${twin.file} have the same name`);
    routines.push({ name, kind, file, text, indexed: basename(dirname(file)) === 'indexed' });
  }
  return routines;
}

/** SHA-256 of the names and texts of routines, in hexadecimal. */
export function hashRoutines(routines: readonly Routine[]): string {
  const hash = createHash('sha256');
  for (const { name, text } of routines) hash.update(`${name}\0${text}\0`);
  return hash.digest('hex');
}

/** The statement that creates or replaces a routine in a schema. The caller quotes `schema` if necessary. */
export function createOrReplace({ text }: Routine, schema: string): string {
  return text.replace(/^create /m, 'create or replace ').replaceAll(':"schema"', schema);
}

/** The text between the first and the last `$$` of a routine: its body, as the database keeps it. */
export function bodyOf({ text }: Routine, schema: string): string | undefined {
  return /\$\$(.*)\$\$/s.exec(text.replaceAll(':"schema"', schema))?.[1];
}

/** One file of the folder of migrations. */
export interface Migration {
  number: number;
  name: string;
  text: string;
  /** SHA-256 of the text in hexadecimal, independent of line endings. */
  checksum: string;
}

const fileName = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** The migrations of a folder, in order. Throws an OperatorError if a name is wrong or a number occurs twice. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const migrations: Migration[] = [];
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()) {
    const match = fileName.exec(file);
    if (match === null) throw new OperatorError(`${file} is not named as a migration is: 0001-name.sql`);
    const number = Number(match[1]);
    const twin = migrations.find((other) => other.number === number);
    if (twin !== undefined) throw new OperatorError(`${file} and ${twin.name} have the same number`);
    const text = readFileSync(join(folder, file), 'utf8');
    migrations.push({ number, name: file, text, checksum: checksumOf(text) });
  }
  return migrations;
}

/** What a database stores about an applied migration. */
function checksumOf(text: string): string {
  return createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex');
}

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
