import { spawn } from 'node:child_process';
import { appendFile, copyFile, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasCode, OperatorError } from '../../core/errors.ts';
import { readIfThere } from '../write-once.ts';
import { type Binaries, programPath } from './binaries.ts';
import { clusterPassword, ownerRole, passwordFile } from './credentials.ts';
import { giveTo, type Home } from './home.ts';
import type { Durability } from './settings.ts';

/** The settings that every start rewrites, and the operator's own. */
export const settingsFileName = 'annals.conf';
export const ownSettingsFileName = 'own.conf';

const draftPrefix = 'cluster.new-';

// On Windows initdb syncs, since files that are open for reading cannot be synced there.
const syncsItself = process.platform !== 'win32';
const syncsAtOnce = 16;

/** Creates the cluster if there is none. Only one process at a time may call it. */
export async function ensureCluster(home: Home, binaries: Binaries, durability: Durability): Promise<void> {
  const version = await readIfThere(join(home.cluster, 'PG_VERSION'));
  if (version !== undefined) return checkVersion(version.trim(), binaries, home);
  await removeDrafts(home);
  await clusterPassword(home);
  // Renamed when complete, so that a crash leaves no half cluster behind.
  const draft = join(home.folder, `${draftPrefix}${process.pid}`);
  await mkdir(draft, { mode: 0o700 });
  await giveTo(home.user, draft);
  await runInitdb(home, binaries, draft, durability);
  await appendFile(
    join(draft, 'postgresql.conf'),
    `\ninclude_if_exists = '${settingsFileName}'\ninclude_if_exists = '${ownSettingsFileName}'\n`,
  );
  if (durability === 'full' && syncsItself) await syncFiles(draft);
  await rename(draft, home.cluster);
}

function checkVersion(found: string, binaries: Binaries, home: Home): void {
  const ours = binaries.version.split('.')[0];
  if (found === ours) return;
  throw new OperatorError(
    `The embedded database in ${home.folder} was made by PostgreSQL ${found}, and this version of Annals brings ` +
      `PostgreSQL ${ours}. Run the version of Annals that made it, or dump it there (pg_dump) and restore it into a new ` +
      'data folder',
  );
}

async function removeDrafts(home: Home): Promise<void> {
  for (const name of await readdir(home.folder)) {
    if (name.startsWith(draftPrefix)) await rm(join(home.folder, name), { recursive: true, force: true });
  }
}

async function runInitdb(home: Home, binaries: Binaries, target: string, durability: Durability): Promise<void> {
  // A copy that only the server's account can read.
  const passwordCopy = join(target, '..', `${draftPrefix}password`);
  await copyFile(passwordFile(home), passwordCopy);
  await giveTo(home.user, passwordCopy);
  const args = [
    `--pgdata=${target}`,
    `--username=${ownerRole}`,
    `--pwfile=${passwordCopy}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(durability === 'none' || syncsItself ? ['--no-sync'] : []),
  ];
  const { code, output } = await run(home, programPath(binaries, 'initdb'), args);
  await rm(passwordCopy, { force: true });
  if (code === 0) return;
  throw new OperatorError(
    `The embedded database could not be created in ${home.folder} (initdb ended with ${code}):\n${output.trim()}`,
  );
}

/** Syncs the folder to disk, several files at once, unlike initdb: the disk then combines many syncs. */
async function syncFiles(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = [folder, ...entries.map(({ parentPath, name }) => join(parentPath, name))].values();
  const syncNext = async () => {
    for (const path of paths) {
      const file = await open(path);
      await file.sync().finally(() => file.close());
    }
  };
  await Promise.all(Array.from({ length: syncsAtOnce }, syncNext));
}

function run(home: Home, program: string, args: string[]): Promise<{ code: number | string; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: home.folder,
      // A session of its own, so that ^C in the terminal does not stop initdb.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: serverEnvironment(),
      ...accountOf(home),
    });
    let output = '';
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString('utf8')).slice(-4000);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (cause) => reject(cannotRun(program, cause)));
    child.once('close', (code, signal) => resolve({ code: code ?? signal ?? 'nothing', output }));
  });
}

/** The environment of PostgreSQL's programs: without our secrets, and with English messages for our code. */
export function serverEnvironment(extra: Record<string, string> = {}): Record<string, string> {
  const inherited = ['PATH', 'SystemRoot', 'TEMP', 'TMP', 'TMPDIR'].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return { ...Object.fromEntries(inherited), LC_ALL: 'C', ...extra };
}

/** The account of spawned programs. Node drops supplementary groups with it. */
export function accountOf(home: Home): { uid?: number; gid?: number } {
  return home.user === undefined ? {} : { uid: home.user.uid, gid: home.user.gid };
}

/** The error for an existing program of PostgreSQL that does not run. */
export function cannotRun(program: string, cause: Error): OperatorError {
  // Systems report a program for another C library (for example on Alpine) as not found.
  const reason = hasCode(cause, 'ENOENT', 'ENOEXEC') ? 'it is not made for this system' : cause.message;
  return new OperatorError(
    `The embedded PostgreSQL cannot be run: ${reason} (${program}). Set DATABASE_URL to a PostgreSQL 15 or later`,
    { cause },
  );
}
