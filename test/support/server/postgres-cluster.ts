import { execFile } from 'node:child_process';
import { chmod, chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { findPostgresPrograms } from './postgres-programs.ts';

// PostgreSQL refuses to run as root: this is "nobody".
const unprivileged = 65_534;
const run = promisify(execFile);

/** The data of a PostgreSQL that Debian packages, which `postgres` can be started on. */
export interface PostgresCluster {
  readonly data: string;
  /** How its programs are run. */
  readonly as: { readonly uid?: number; readonly gid?: number; readonly cwd: string };
  /** The path of one of its programs. */
  program(name: string): string;
}

/** Makes the data in a folder. Its one role, `annals`, is a superuser without a password. */
export async function makePostgresCluster(folder: string): Promise<PostgresCluster> {
  const programs = findPostgresPrograms();
  if (programs === undefined) throw new Error('this needs pg_dump and a server: apt-get install postgresql');
  const data = join(folder, 'data');
  await mkdir(data, { mode: 0o700 });
  await chmod(folder, 0o755);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) await chown(data, unprivileged, unprivileged);
  const as = isRoot ? { uid: unprivileged, gid: unprivileged, cwd: '/' } : { cwd: '/' };
  const initdb = ['-D', data, '-U', 'annals', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await run(join(programs, 'initdb'), initdb, as);
  return { data, as, program: (name) => join(programs, name) };
}

export async function answers(url: string): Promise<boolean> {
  const client = new pg.Client(url);
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}
