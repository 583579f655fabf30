import { join } from 'node:path';
import { findBinaries } from './binaries.ts';
import { clusterPassword, serviceUrl, setUpService } from './credentials.ts';
import { takeFileLock, tryFileLock } from './file-lock.ts';
import { findHome, type Home } from './home.ts';
import { ensureCluster } from './initialise.ts';
import { reachableBinaries } from './reachable-binaries.ts';
import { findServer, type RunningServer, startServer, stopServer } from './server.ts';
import type { Durability } from './settings.ts';

export interface EmbeddedDatabase {
  url: string;
  /** Lets go of the database; the last process to do so stops the server. A second call does nothing. */
  release(): Promise<void>;
}

export interface EmbeddedDatabaseOptions {
  dataDir: string;
  /** Told, in single lines, what an operator should know. */
  log: (line: string) => void;
  /** `none` is for databases that may be lost with the machine: tests. The default is `full`. */
  durability?: Durability;
}

/**
 * Opens the PostgreSQL of a data folder, making and starting it if need be. Any number of processes may: each
 * holds a shared lock on `members.lock` for as long as it lives, and a short mutex, `server.lock`, makes starting,
 * joining and leaving one at a time. Both are dropped by the kernel when their holder dies (contract 1).
 */
export async function openEmbeddedDatabase(options: EmbeddedDatabaseOptions): Promise<EmbeddedDatabase> {
  const { log, durability = 'full' } = options;
  const home = await findHome(options.dataDir);
  const mutex = await takeMutex(home, log);
  try {
    const membership = await takeFileLock(membersFile(home), 'shared');
    try {
      const { port, password } = await ensureServer(home, durability, log);
      return { url: serviceUrl(port, password), release: once(() => leave(home, membership, log)) };
    } catch (error) {
      membership.release();
      throw error;
    }
  } finally {
    mutex.release();
  }
}

async function ensureServer(home: Home, durability: Durability, log: (line: string) => void) {
  const password = await clusterPassword(home);
  const running = await findServer(home, password);
  const server = running ?? (await start(home, password, durability, log));
  await setUpService(server.port, password);
  return { port: server.port, password };
}

async function start(
  home: Home,
  password: string,
  durability: Durability,
  log: (line: string) => void,
): Promise<RunningServer> {
  if (home.notice !== undefined) log(home.notice);
  const binaries = await reachableBinaries(home, await findBinaries());
  await ensureCluster(home, binaries, durability);
  return await startServer(home, binaries, password, durability);
}

async function leave(home: Home, membership: { release(): void }, log: (line: string) => void): Promise<void> {
  const mutex = await takeMutex(home, log);
  try {
    membership.release();
    const alone = tryFileLock(membersFile(home), 'exclusive');
    if (alone === undefined) return;
    try {
      await stopServer(home);
    } finally {
      alone.release();
    }
  } finally {
    mutex.release();
  }
}

function takeMutex(home: Home, log: (line: string) => void) {
  return takeFileLock(join(home.folder, 'server.lock'), 'exclusive', () =>
    log(`waiting for another process that starts or stops the database in ${home.folder}`),
  );
}

function membersFile(home: Home): string {
  return join(home.folder, 'members.lock');
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}
