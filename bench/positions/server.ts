import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../src/postgres/embedded/free-port.ts';
import { answers, makePostgresCluster } from '../../test/support/server/postgres-cluster.ts';
import { findPostgresPrograms } from '../../test/support/server/postgres-programs.ts';

/** A PostgreSQL of Debian with its usual settings, which can be killed and started again on the same port. */
export interface KilledServer {
  url: string;
  /** Kills all of its processes with SIGKILL and starts it again. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

export async function startServer(): Promise<KilledServer> {
  const folder = await mkdtemp(join(tmpdir(), 'annals-positions-'));
  const programs = findPostgresPrograms();
  if (programs === undefined) throw new Error('this needs a server: apt-get install postgresql');
  const { data, as, program } = await makePostgresCluster(folder, programs, 'annals');
  const port = await freePort();
  const url = `postgres://annals@127.0.0.1:${port}/postgres`;
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=60'];
  const start = async () => {
    const child = spawn(
      program('postgres'),
      ['-D', data, '-p', String(port), ...settings.flatMap((one) => ['-c', one])],
      { ...as, stdio: 'ignore' },
    );
    while (!(await answers(url))) await sleep(50);
    return child;
  };
  let server = await start();
  return {
    url,
    async kill() {
      const children = await childrenOf(server.pid ?? 0);
      server.kill('SIGKILL');
      for (const child of children) {
        try {
          process.kill(child, 'SIGKILL');
        } catch {
          // It has ended by itself.
        }
      }
      while ((await alive(children)).length > 0) await sleep(20);
      server = await start();
    },
    async stop() {
      const ended = once(server, 'exit');
      server.kill('SIGINT');
      await ended;
      await rm(folder, { recursive: true });
    },
  };
}

async function childrenOf(parent: number): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0);
  const found: number[] = [];
  for (const pid of pids) {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    // What follows the name: state and parent.
    if (Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent) found.push(pid);
  }
  return found;
}

async function alive(pids: readonly number[]): Promise<number[]> {
  const states = await Promise.all(
    pids.map(async (pid) => {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
      return stat === '' || stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z') ? [] : [pid];
    }),
  );
  return states.flat();
}
