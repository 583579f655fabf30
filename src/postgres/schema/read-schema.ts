import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { OperatorError } from '../../core/errors.ts';
import { packageFolder } from '../../core/package-folder.ts';

// Routines about the place of a tenant, which read no tables.
const aboutPlaces = ['change_lineage', 'change_placement'];

// Frequent writers. Others are only a statement or two.
const writers = [
  'change_fold',
  'change_position_give',
  'change_position_mark',
  'change_position_write',
  'path_register',
  'receipt_write',
  'record_entries_numbered',
];

const allowWrites = 'set citus.enable_manual_changes_to_shards = on';

const isOfTenant = /^create function \w+\(\s*of_tenant text\b/m;
const isStable = /\bstable\b/;

/** The names of a shard's own tables and routines (docs/decisions/cluster.md). */
interface ShardNames {
  /** The quoted name of the schema that the routine is for. */
  schema: string;
  /** The qualified names of the shard's tables, by the names of the distributed tables. */
  tables: ReadonlyMap<string, string>;
}

/** Whether each shard gets its own copy of the routine: it only reads a tenant's tables, or is a writer. */
export function isForShards({ name, text }: Routine): boolean {
  const changesNothing = isStable.test(partsOf(text).head) && !aboutPlaces.includes(name);
  return isOfTenant.test(text) && (changesNothing || writers.includes(name));
}

/**
 * The statement that creates the routine of a shard: that of one server, with the tables of the shard. Hidden from the
 * cluster, the routine keeps its plans as on one server.
 */
export function createForShard(routine: Routine, all: readonly Routine[], { schema, tables }: ShardNames): string {
  const { head, body, tail } = partsOf(routine.text);
  const ofShard = body
    .replaceAll(
      /\b(from|join|into|update)(\s+)(\w+)\b/g,
      (_text, keyword: string, space: string, name: string) => `${keyword}${space}${tables.get(name) ?? name}`,
    )
    .replaceAll(/\b(\w+)(?=\()/g, (name) => (all.some((known) => known.name === name) ? `${schema}.${name}` : name));
  const created = head.replace(/^create function /m, `create function ${schema}.`);
  // A cluster lets its own sessions write to shards, but a coordinator with shards calls the routine in the client's.
  const allowed = writers.includes(routine.name) ? created.replace(/as $/, `${allowWrites} as `) : created;
  return `${allowed}$$${ofShard}$$${tail}`;
}

/**
 * A routine of a cluster that delegates to that of the tenant's shard, if there is one. Returns other routines
 * unchanged, also those with out parameters, which only routines call.
 */
export function preferShardRoutine(routine: Routine): Routine {
  if (!isForShards(routine)) return routine;
  const { head, body, tail } = partsOf(routine.text);
  const [, parameters = '', result = ''] = /\(([^)]*)\)\s*returns\s+(\w+(?:\[\])?)/.exec(head) ?? [];
  if (result === '' || !/language plpgsql/.test(head + tail)) return routine;
  const names = parameters.split(',').map((parameter) => parameter.trim().split(/\s+/)[0] ?? '');
  const isSet = result === 'table' || result === 'setof';
  const places = names.map((_name, index) => `$${index + 1}`).join(', ');
  const call = `format('select ${isSet ? '* from ' : ''}%I.${routine.name}(${places})', shard_schema)`;
  const values = `using ${names.join(', ')}`;
  const [, options = '', block = ''] = /^((?:\s*#[^\n]*\n)*)([\s\S]*)$/.exec(body) ?? [];
  const lines = [
    'declare',
    `  shard_schema constant text := ${writers.includes(routine.name) ? 'shard_routines_to_write' : 'shard_routines'}(of_tenant);`,
    ...(isSet ? [] : [`  shard_result ${result};`]),
    'begin',
    '  if shard_schema is not null then',
    ...(isSet
      ? [`    return query execute ${call} ${values};`, '    return;']
      : [`    execute ${call} into shard_result ${values};`, '    return shard_result;']),
    '  end if;',
  ];
  return { ...routine, text: `${head}$$${options}\n${lines.join('\n')}\n${block.trim()};\nend\n$$${tail}` };
}

function partsOf(text: string): { head: string; body: string; tail: string } {
  const [, head, body, tail] = /^([\s\S]*?)\$\$([\s\S]*)\$\$([\s\S]*)$/.exec(text) ?? [];
  // One-line routines have their body in quotes. None of them reads tables.
  if (head === undefined || body === undefined || tail === undefined) return { head: text, body: '', tail: '' };
  return { head, body, tail };
}

/** A function, procedure or aggregate of the database, with the text that creates it. */
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

// The beginning of a file, after its comments. Names may include the schema (:"schema".name) for indexes, whose builds
// do not have ours in their search path.
const beginning = /^(?:--[^\n]*\n|\s*\n)*create (function|procedure|aggregate) (?::"schema"\.)?([a-z_][a-z0-9_]*)\s*\(/;

/**
 * The form of the routines: for one server, for the coordinator of a cluster, or for the tables of a shard, which a
 * worker treats like those of one server (docs/decisions/cluster.md).
 */
type RoutineForm = 'single' | 'distributed' | 'shard';

/**
 * Reads all routines below a folder. Folders named `distributed` have a second form of routines that differ in a
 * cluster, and routines for clusters only. Throws an OperatorError if a routine is invalid.
 */
export async function readRoutines(folder: string, form: RoutineForm = 'single'): Promise<Routine[]> {
  const all = readAllRoutines(folder);
  const isSecond = ({ file }: Routine) => basename(dirname(file)) === 'distributed';
  const second = all.filter(isSecond);
  const first = all.filter((routine) => !isSecond(routine));
  if (form === 'single') return first;
  const missing = (from: Routine[], names: Routine[]) =>
    from.filter(({ name }) => !names.some((known) => known.name === name));
  if (form === 'shard') return [...first, ...missing(second, first)];
  return [...missing(first, second), ...second].map(withoutKeptPlans);
}

/** A cluster refuses generic plans, since it plans a statement by its tenant. */
function withoutKeptPlans(routine: Routine): Routine {
  return { ...routine, text: routine.text.replaceAll('set plan_cache_mode = force_generic_plan', '') };
}

/** Synchronous, since that takes a fifth of the processor time for hundreds of small files. */
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

/** The statement that creates or replaces a routine in a schema, whose name is quoted if necessary. */
export function createOrReplace({ text }: Routine, schema: string): string {
  return text.replace(/^create /m, 'create or replace ').replaceAll(':"schema"', schema);
}

/** The body of a routine as the database stores it: the text between the first and the last `$$`. */
export function bodyOf({ text }: Routine, schema: string): string | undefined {
  return /\$\$(.*)\$\$/s.exec(text.replaceAll(':"schema"', schema))?.[1];
}

/** A file of the folder of migrations. */
export interface Migration {
  number: number;
  name: string;
  text: string;
  /** SHA-256 of the text in hexadecimal, independent of line endings. */
  checksum: string;
}

const fileName = /^(\d{4})-([a-z0-9-]+)\.sql$/;

/** The migrations of a folder, in order. Throws an OperatorError if a name is malformed or a number occurs twice. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const migrations: Migration[] = [];
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .sort()) {
    const match = fileName.exec(file);
    if (match === null) throw new OperatorError(`${file} is not named like a migration: 0001-name.sql`);
    const number = Number(match[1]);
    const twin = migrations.find((other) => other.number === number);
    if (twin !== undefined) throw new OperatorError(`${file} and ${twin.name} have the same number`);
    const text = readFileSync(join(folder, file), 'utf8');
    migrations.push({ number, name: file, text, checksum: checksumOf(text) });
  }
  return migrations;
}

/** The checksum of an applied migration. */
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
  /** The routines of each shard of a cluster; none on one server. */
  shardRoutines: readonly Routine[];
  /** Increases with every release that changes routines. */
  routinesVersion: number;
  routinesHash: string;
}

/** The folders of this package. */
export function packageSchema(): SchemaFolders {
  return { migrations: join(packageFolder(), 'migrations'), routines: join(packageFolder(), 'sql') };
}

const ofPackage = new Map<RoutineForm, Promise<Schema>>();

/** The schema of this package, read once in a process. */
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
  if (!/^[1-9]\d{0,8}$/.test(version))
    throw new OperatorError(`sql/version.txt must have a whole number, not ${version}`);
  return {
    migrations,
    newest: migrations.at(-1)?.number ?? 0,
    routines,
    shardRoutines,
    routinesVersion: Number(version),
    routinesHash: hashRoutines([...routines, ...shardRoutines.map((routine) => createdFor(routine, shardRoutines))]),
  };
}

/** The hash covers the created text, so that it also changes with the rewriting for shards. */
function createdFor(routine: Routine, all: readonly Routine[]): Routine {
  return { ...routine, text: createForShard(routine, all, { schema: '', tables: new Map() }) };
}
