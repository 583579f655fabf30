import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { freePort } from '../../../src/postgres/embedded/free-port.ts';
import { temporaryFolder } from './package-copy.ts';
import { eventually } from './patience.ts';
import { findPostgresPrograms } from './postgres-programs.ts';

// PostgreSQL refuses to run as root: this is "nobody".
const unprivileged = 65_534;
const run = promisify(execFile);

export interface PackagedPostgres {
  /** Of an empty database. The role is a superuser. */
  url: string;
  /** Runs a program of the same version and returns what it prints. */
  run(program: 'pg_dump' | 'pg_restore', args: string[]): Promise<string>;
}

/** Starts a PostgreSQL that Debian packages, for this test, with transaction ids beyond `epoch` * 2^32. */
export async function startPackagedPostgres({ epoch }: { epoch: number }): Promise<PackagedPostgres> {
  const programs = findPostgresPrograms();
  if (programs === undefined) throw new Error('this test needs pg_dump and a server: apt-get install postgresql');
  const folder = await temporaryFolder();
  const data = join(folder, 'data');
  await mkdir(data, { mode: 0o700 });
  await chmod(folder, 0o755);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) await chown(data, unprivileged, unprivileged);
  const as = isRoot ? { uid: unprivileged, gid: unprivileged } : {};
  const initdb = ['-D', data, '-U', 'annals', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await run(join(programs, 'initdb'), initdb, { ...as, cwd: '/' });
  await run(join(programs, 'pg_resetwal'), ['-e', String(epoch), '-D', data], { ...as, cwd: '/' });
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'].flatMap((one) => [
    '-c',
    one,
  ]);
  const server = spawn(join(programs, 'postgres'), ['-D', data, '-p', String(port), ...settings], {
    ...as,
    cwd: '/',
    stdio: 'ignore',
  });
  const ended = once(server, 'exit');
  onTestFinished(async () => {
    server.kill('SIGINT');
    await ended;
  });
  const url = `postgres://annals@127.0.0.1:${port}/postgres`;
  await eventually(() => answers(url)).toBe(true);
  return {
    url,
    run: async (program, args) => (await run(join(programs, program), args, { maxBuffer: 1e9 })).stdout,
  };
}

async function answers(url: string): Promise<boolean> {
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
