import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { ownPort } from './own-port.ts';
import { temporaryFolder } from './package-copy.ts';
import { eventually } from './patience.ts';
import { answers, makePostgresCluster } from './postgres-cluster.ts';

const run = promisify(execFile);

export interface PackagedPostgres {
  /** Of an empty database. The role is a superuser. */
  url: string;
  /** Runs a program of the same version and returns what it prints. */
  run(program: 'pg_dump' | 'pg_restore', args: string[]): Promise<string>;
}

/** Starts a PostgreSQL that Debian packages, for this test, with transaction ids beyond `epoch` * 2^32, and with `more` settings. */
export async function startPackagedPostgres({
  epoch = 1,
  more = [],
}: {
  epoch?: number;
  more?: readonly string[];
}): Promise<PackagedPostgres> {
  const { data, as, program } = await makePostgresCluster(await temporaryFolder());
  await run(program('pg_resetwal'), ['-e', String(epoch), '-D', data], as);
  const port = await ownPort();
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off', ...more].flatMap((one) => [
    '-c',
    one,
  ]);
  const server = spawn(program('postgres'), ['-D', data, '-p', String(port), ...settings], { ...as, stdio: 'ignore' });
  const ended = once(server, 'exit');
  onTestFinished(async () => {
    server.kill('SIGINT');
    await ended;
  });
  const url = `postgres://annals@127.0.0.1:${port}/postgres`;
  await eventually(() => answers(url)).toBe(true);
  return {
    url,
    run: async (name, args) => (await run(program(name), args, { maxBuffer: 1e9 })).stdout,
  };
}
