import { cp, lchown, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../../core/errors.ts';
import { type Binaries, findBinaries, programPath } from './binaries.ts';
import { clusterPassword, serviceUrl, setUpService } from './credentials.ts';
import { type FileLock, takeFileLock, tryFileLock } from './file-lock.ts';
import { findHome, giveTo, type Home } from './home.ts';
import { ensureCluster } from './initialise.ts';
import { boundServerLog, findServer, type RunningServer, servesCluster, startServer, stopServer } from './server.ts';
import { type ServerUser, succeedsAs } from './server-user.ts';
import type { Durability } from './settings.ts';

/** Milliseconds between two checks that the server still runs. */
const watchInterval = 2_000;
/** Milliseconds after which a slow start is logged. */
const slowStart = 10_000;

interface EmbeddedDatabase {
  url: string;
  /** Releases the database; the last process to do so stops the server. Idempotent. */
  release(): Promise<void>;
}

interface EmbeddedDatabaseOptions {
  dataDir: string;
  /** Called with single lines for the operator. */
  log: (line: string) => void;
  /** Default: `full`. */
  durability?: Durability;
}

/**
 * Opens the PostgreSQL of a data folder, and creates and starts it if necessary. Any number of processes may do so.
 * Each has a shared lock on `members.lock` while it lives; a short mutex, `server.lock`, lets one at a time start, join
 * or leave. The kernel releases both when their holder dies (contract 1).
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

/** Wraps failed system calls (no space, no permission) for operators. */
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
    () => opening.log('the embedded PostgreSQL is slow to start, as after a crash: waiting for it'),
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

/** Restarts the server if it is killed, and keeps its log bounded. */
function keepRunning(opening: Opening, first: RunningServer): { end(): void } {
  let server = first;
  let busy = false;
  async function check(): Promise<void> {
    await boundServerLog(opening.home);
    if ((await servesCluster(server.pid, opening.home.cluster)) !== false) return;
    await withMutex(opening, async () => {
      if (opening.left) return;
      server = (await ensureServer(opening)).server;
      opening.log(
        server.port === first.port
          ? 'the embedded PostgreSQL had died and was restarted'
          : `the embedded PostgreSQL had died and was restarted on port ${server.port}: restart this process to reach it`,
      );
    });
  }
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    check()
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

/**
 * The binaries if the server's account can run them, otherwise a copy in its home, one for each version (contract 1: as
 * root). Only one process at a time may call it.
 */
export async function reachableBinaries(home: Home, binaries: Binaries): Promise<Binaries> {
  const { user } = home;
  if (user === undefined || (await runs(user, binaries))) return binaries;
  const copies = join(home.folder, 'binaries');
  const copy: Binaries = { folder: join(copies, binaries.version), version: binaries.version };
  if (await runs(user, copy)) return copy;
  // No server runs on this cluster now, so older copies are unused.
  await rm(copies, { recursive: true, force: true });
  const draft = join(copies, `${binaries.version}.new`);
  await cp(binaries.folder, draft, { recursive: true, verbatimSymlinks: true });
  await giveTo(user, copies);
  await giveAll(user, draft);
  await rename(draft, copy.folder);
  return copy;
}

function runs(user: ServerUser, binaries: Binaries): Promise<boolean> {
  return succeedsAs(user, programPath(binaries, 'postgres'), ['--version']);
}

async function giveAll(user: ServerUser, folder: string): Promise<void> {
  await lchown(folder, user.uid, user.gid);
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    await lchown(join(entry.parentPath, entry.name), user.uid, user.gid);
  }
}
