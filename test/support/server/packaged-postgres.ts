import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './package-copy.ts';
import { makePostgresCluster, startPostgres } from './postgres-cluster.ts';
import { findPostgresPrograms } from './postgres-programs.ts';

const run = promisify(execFile);
const role = 'annals';

export interface PackagedPostgres {
  /** Of an empty database. The role is a superuser. */
  url: string;
  /** Runs a program of the same version and returns what it prints. */
  run(program: 'pg_dump' | 'pg_restore', args: string[]): Promise<string>;
}

/**
 * Starts a PostgreSQL that Debian packages, for this test, with transaction ids beyond `epoch` * 2^32, and with these
 * settings.
 */
export async function startPackagedPostgres({
  epoch = 1,
  settings = {},
}: {
  epoch?: number;
  settings?: Readonly<Record<string, string>>;
}): Promise<PackagedPostgres> {
  const programs = findPostgresPrograms();
  if (programs === undefined) throw new Error('this needs pg_dump and a server: apt-get install postgresql');
  const cluster = await makePostgresCluster(await temporaryFolder(), programs, role);
  const { data, as, program } = cluster;
  await run(program('pg_resetwal'), ['-e', String(epoch), '-D', data], as);
  const { port, stop } = await startPostgres(cluster, role, settings);
  onTestFinished(stop);
  return {
    url: `postgres://${role}@127.0.0.1:${port}/postgres`,
    run: async (name, args) => (await run(program(name), args, { maxBuffer: 1e9 })).stdout,
  };
}
