import { join } from 'node:path';
import { OperatorError } from '../../core/operator-error.ts';
import { findBinaries } from './binaries.ts';
import { clusterPassword, serviceUrl, setUpService } from './credentials.ts';
import { type FileLock, takeFileLock, tryFileLock } from './file-lock.ts';
import { findHome, type Home } from './home.ts';
import { ensureCluster } from './initialise.ts';
import { servesCluster } from './postmaster-file.ts';
import { reachableBinaries } from './reachable-binaries.ts';
import { findServer, type RunningServer, startServer, stopServer } from './server.ts';
import { boundServerLog } from './server-log.ts';
import type { Durability } from './settings.ts';

// Milliseconds between two checks that the server still runs.
const watchInterval = 2_000;
// Milliseconds after which a slow start is logged.
const slowStart = 10_000;

export interface EmbeddedDatabase {
  url: string;
  /** Releases the database. The last process to release it stops the server. A second call does nothing. */
  release(): Promise<void>;
}

export interface EmbeddedDatabaseOptions {
  dataDir: string;
  /** Called with single lines for the operator. */
  log: (line: string) => void;
  /** `none` is for databases that may be lost with the machine, such as those of tests. The default is `full`. */
  durability?: Durability;
}

/**
 * Opens the PostgreSQL of a data folder, and creates and starts it where needed. Any number of processes may do so. Each holds a
 * shared lock on `members.lock` as long as it lives. A short mutex, `server.lock`, lets one process at a time start, join or leave. The
 * kernel releases both when their holder dies (contract 1).
 */
export async function openEmbeddedDatabase(options: EmbeddedDatabaseOptions): Promise<EmbeddedDatabase> {
  const home = await findHome(options.dataDir);
  const opening: Opening = { home, log: options.log, durability: options.durability ?? 'full', left: false };
  return await withMutex(opening, async () => {
    const membership = await takeFileLock(membersFile(home), 'shared');
    try {
      const { server, password } = await ensureServer(opening);
      const url = serviceUrl(server.port, password);
      const watch = keepRunning(opening, server);
      return {
        url,
        release: once(() => {
          watch.end();
          return leave(opening, membership);
        }),
      };
    } catch (error) {
      membership.release();
      throw explained(error, home);
    }
  });
}

/** Turns failed system calls (no room, no permission) into an error that says what they were for. */
function explained(error: unknown, home: Home): unknown {
  if (!(error instanceof Error) || !('syscall' in error)) return error;
  return new OperatorError(`The embedded database in ${home.folder} cannot be used: ${error.message}`, {
    cause: error,
  });
}

interface Opening {
  home: Home;
  log: (line: string) => void;
  durability: Durability;
  left: boolean;
}

async function ensureServer(opening: Opening): Promise<{ server: RunningServer; password: string }> {
  const slow = setTimeout(
    () => opening.log('the embedded PostgreSQL takes its time to start, as it does after a crash: waiting for it'),
    slowStart,
  );
  try {
    const password = await clusterPassword(opening.home);
    const server = (await findServer(opening.home, password)) ?? (await start(opening, password));
    await setUpService(server.port, password);
    return { server, password };
  } finally {
    clearTimeout(slow);
  }
}

async function start({ home, log, durability }: Opening, password: string): Promise<RunningServer> {
  if (home.notice !== undefined) log(home.notice);
  const binaries = await reachableBinaries(home, await findBinaries());
  await ensureCluster(home, binaries, durability);
  return await startServer(home, binaries, password, durability);
}

/** Starts the server again if it is killed, and keeps its log bounded. */
function keepRunning(opening: Opening, first: RunningServer): { end(): void } {
  let server = first;
  let busy = false;
  async function look(): Promise<void> {
    await boundServerLog(opening.home);
    if ((await servesCluster(server.pid, opening.home.cluster)) !== false) return;
    await withMutex(opening, async () => {
      if (opening.left) return;
      server = (await ensureServer(opening)).server;
      opening.log(
        server.port === first.port
          ? 'the embedded PostgreSQL had gone and runs again'
          : `the embedded PostgreSQL had gone and runs again on port ${server.port}: restart this process to reach it`,
      );
    });
  }
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    look()
      .catch((error: Error) => opening.log(error.message))
      .finally(() => {
        busy = false;
      });
  }, watchInterval);
  timer.unref();
  return { end: () => clearInterval(timer) };
}

async function leave(opening: Opening, membership: FileLock): Promise<void> {
  await withMutex(opening, async () => {
    opening.left = true;
    membership.release();
    const alone = tryFileLock(membersFile(opening.home), 'exclusive');
    if (alone === undefined) return;
    try {
      await stopServer(opening.home);
    } finally {
      alone.release();
    }
  });
}

async function withMutex<Result>({ home, log }: Opening, work: () => Promise<Result>): Promise<Result> {
  const mutex = await takeFileLock(join(home.folder, 'server.lock'), 'exclusive', () =>
    log(`waiting for another process that starts or stops the database in ${home.folder}`),
  );
  try {
    return await work();
  } finally {
    mutex.release();
  }
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
