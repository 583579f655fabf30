import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { serviceUrl, setUpService } from '../../../src/postgres/embedded/credentials.ts';
import { minServerVersion } from '../../../src/postgres/schema/ledger.ts';
import { makeDataFolder } from './data-folder.ts';
import { makeTemplates, templateName } from './database-server.ts';
import { makePostgresCluster, postgresClusterIn, type StartedPostgres, startPostgres } from './postgres-cluster.ts';
import { findPostgresPrograms } from './postgres-programs.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The folder of data of the oldest PostgreSQL, which no server runs on; null: the tests run on another one. */
    oldestFolder: string | null;
  }
}

const superuser = 'postgres';

/**
 * Every plan that may run in a parallel worker does, and none is made for the values of its parameters: what large
 * tables and long uptimes come to. `force_parallel_mode` is called `debug_parallel_query` from version 16 on.
 */
const settings = {
  force_parallel_mode: 'on',
  plan_cache_mode: 'force_generic_plan',
  max_connections: '200',
  max_worker_processes: '32',
  // To start a worker copies the maps of this memory, and makes a segment where none is kept: a third of what the run
  // takes.
  shared_buffers: '32MB',
  min_dynamic_shared_memory: '64MB',
  jit: 'off',
  timezone: 'UTC',
  random_page_cost: '1.1',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_wal_size: '4GB',
  checkpoint_timeout: '15min',
};

/**
 * For the whole run one PostgreSQL of the oldest version that Annals supports, of Debian's packages; stopped and
 * removed at the end.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const programs = oldestPrograms();
  const initialised = dirname(await makeDataFolder());
  const remove = () => rm(initialised, { recursive: true, force: true });
  try {
    await makePostgresCluster(initialised, programs, superuser);
    const { port, stop } = await startOldest(initialised);
    const url = serviceUrl(port, '');
    project.provide('oldestFolder', initialised);
    project.provide('cluster', null);
    project.provide('databaseUrl', url);
    try {
      await makeTemplates(url);
      await lookForWorkAlone(url);
    } catch (error) {
      await stop();
      throw error;
    }
    return async () => {
      await stop();
      await remove();
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Services look for work every half second, and rest for 50 times as long as a look took. With a worker for each of its
 * questions that is many seconds, in which tests wait. Other tests ask these questions themselves, in parallel.
 */
async function lookForWorkAlone(url: string): Promise<void> {
  const client = new pg.Client(Object.assign(new URL(url), { pathname: templateName }).href);
  await client.connect();
  try {
    await client.query('alter function found_work set force_parallel_mode = off');
  } finally {
    await client.end();
  }
}

/** Starts a server on a copy of such data, with the role and the database of a service. */
export async function startOldest(from: string, more: Readonly<Record<string, string>> = {}): Promise<StartedPostgres> {
  const folder = dirname(await makeDataFolder());
  await promisify(execFile)('cp', ['-a', `${from}/.`, folder]);
  const { port, stop } = await startPostgres(postgresClusterIn(folder, oldestPrograms()), superuser, {
    ...settings,
    ...more,
  });
  await setUpService(port, '');
  return {
    port,
    stop: async () => {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function oldestPrograms(): string {
  const programs = findPostgresPrograms(minServerVersion);
  if (programs !== undefined) return programs;
  throw new Error(
    `The programs of PostgreSQL ${minServerVersion} are not installed. Debian: apt-get install postgresql-${minServerVersion}`,
  );
}
