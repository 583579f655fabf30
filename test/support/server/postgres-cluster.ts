import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { ownPort } from './own-port.ts';

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

/** Data in such a folder, whether it is there yet or not. */
export function postgresClusterIn(folder: string, programs: string): PostgresCluster {
  const isRoot = process.getuid?.() === 0;
  return {
    data: join(folder, 'data'),
    as: isRoot ? { uid: unprivileged, gid: unprivileged, cwd: '/' } : { cwd: '/' },
    program: (name) => join(programs, name),
  };
}

/** Makes the data in a folder. Its one role is a superuser without a password. */
export async function makePostgresCluster(folder: string, programs: string, role: string): Promise<PostgresCluster> {
  const cluster = postgresClusterIn(folder, programs);
  const { data, as, program } = cluster;
  await mkdir(data, { mode: 0o700 });
  await chmod(folder, 0o755);
  if (as.uid !== undefined) await chown(data, unprivileged, unprivileged);
  const initdb = ['-D', data, '-U', role, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await run(program('initdb'), initdb, as);
  return cluster;
}

export interface StartedPostgres {
  readonly port: number;
  stop(): Promise<void>;
}

/** Starts the server on a port of its own, with these settings and none for safety, and waits until it answers. */
export async function startPostgres(
  { data, as, program }: PostgresCluster,
  role: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<StartedPostgres> {
  const port = await ownPort();
  const all = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: 'off',
    ...settings,
  };
  const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawn(program('postgres'), ['-D', data, ...options], { ...as, stdio: 'ignore' });
  const ended = once(server, 'exit');
  const stop = async () => {
    server.kill('SIGINT');
    await ended;
  };
  const url = `postgres://${role}@127.0.0.1:${port}/postgres`;
  for (let waited = 0; !(await answers(url)); waited += pause) {
    if (server.exitCode !== null || waited > patience) {
      await stop();
      throw new Error(`${program('postgres')} does not start on ${data}`);
    }
    await sleep(pause);
  }
  return { port, stop };
}

/** Milliseconds. */
const pause = 50;
const patience = 60_000;

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
