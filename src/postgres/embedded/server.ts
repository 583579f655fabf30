import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFile,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  statfs,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { availableParallelism, totalmem } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode, OperatorError } from '../../core/errors.ts';
import { readIfThere } from '../write-once.ts';
import { type Binaries, findBinaries, programPath } from './binaries.ts';
import { greet } from './credentials.ts';
import { giveTo, type Home } from './home.ts';
import { accountOf, cannotRun, serverEnvironment, settingsFileName } from './initialise.ts';
import { type Durability, type Machine, serverSettings, settingsFile } from './settings.ts';

const maxLogBytes = 4 * 1024 * 1024;

/** The file of the server's log. */
function serverLogFile(home: Home): string {
  return join(home.folder, 'server.log');
}

/** Opens the log for a server that is about to start. `start` is the offset of its part of the log. */
async function openServerLog(home: Home) {
  const path = serverLogFile(home);
  const file = await open(path, 'a', 0o600);
  await giveTo(home.user, path);
  await boundServerLog(home);
  return { file, path, start: (await file.stat()).size };
}

/** Moves a log that is too long aside, over the previous one. */
export async function boundServerLog(home: Home): Promise<void> {
  const path = serverLogFile(home);
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || found.size <= maxLogBytes) return;
  await copyFile(path, `${path}.old`);
  // The server has the file open for appending, so it continues at the new end.
  await truncate(path);
}

// The following functions may be called only with the mutex of the home.

export interface RunningServer {
  port: number;
  pid: number;
}

/** The server that runs on this cluster; undefined if none does. Waits while it starts, recovers or stops. */
export async function findServer(home: Home, password: string): Promise<RunningServer | undefined> {
  let strangers = 0;
  for (;;) {
    const file = await readPostmasterFile(home.cluster);
    if (file === undefined) return undefined;
    const ours = await servesCluster(file.pid, home.cluster);
    if (ours === false) return undefined;
    const greeting = file.port > 0 && file.status !== 'stopping' ? await greet(file.port, password) : 'not-yet';
    if (greeting === 'ready') return { port: file.port, pid: file.pid };
    if (greeting === 'stranger' || (greeting === 'refused' && ours === undefined)) strangers++;
    if (strangers > 20) {
      if (ours === undefined) return undefined;
      throw new OperatorError(
        `A PostgreSQL (process ${file.pid}) runs on ${home.cluster} and does not take the password in ` +
          `${home.folder}. Stop it, then start again`,
      );
    }
    await sleep(50);
  }
}

/** Starts a server in a session of its own, on the port of the last start if it is free. */
export async function startServer(
  home: Home,
  binaries: Binaries,
  password: string,
  durability: Durability,
): Promise<RunningServer> {
  const deadline = performance.now() + 60_000;
  let lastPort: number | undefined = Number(await readIfThere(portFile(home))) || undefined;
  for (;;) {
    const port = await freePort(lastPort);
    await writeSettings(home, port, durability);
    const outcome = await launch(home, binaries, port, password);
    if ('pid' in outcome) {
      if (port !== Number(await readIfThere(portFile(home)))) await writeOwned(home, portFile(home), `${port}\n`);
      return outcome;
    }
    if (performance.now() > deadline) throw startFailed(home, outcome.log);
    if (/could not bind|could not create any TCP\/IP sockets/.test(outcome.log)) {
      lastPort = undefined;
    } else if (outcome.log.includes('pre-existing shared memory block')) {
      await endOrphans(home.cluster);
    } else {
      throw startFailed(home, outcome.log);
    }
  }
}

/** Shuts the server down and waits for its end. */
export async function stopServer(home: Home): Promise<void> {
  const file = await readPostmasterFile(home.cluster);
  if (file === undefined || (await servesCluster(file.pid, home.cluster)) === false) return;
  if (process.platform === 'win32') return await stopByProgram(home);
  // SIGINT is PostgreSQL's fast shutdown: it disconnects clients and writes a checkpoint. SIGQUIT writes none.
  for (const [signal, seconds] of [['SIGINT', 120] as const, ['SIGQUIT', 20] as const]) {
    try {
      process.kill(file.pid, signal);
    } catch {
      return;
    }
    const deadline = performance.now() + seconds * 1000;
    while (performance.now() < deadline) {
      if (!isAlive(file.pid) || (await servesCluster(file.pid, home.cluster)) === false) return;
      await sleep(10);
    }
  }
}

/** For Windows, which has no signals. */
async function stopByProgram(home: Home): Promise<void> {
  const program = programPath(await findBinaries(), 'pg_ctl');
  const child = spawn(program, ['stop', '-D', home.cluster, '-m', 'fast', '-w'], { stdio: 'ignore' });
  await once(child, 'exit');
}

type Launch = RunningServer | { log: string };

async function launch(home: Home, binaries: Binaries, port: number, password: string): Promise<Launch> {
  const log = await openServerLog(home);
  const stale = await readPostmasterFile(home.cluster);
  try {
    const program = programPath(binaries, 'postgres');
    const child = spawn(program, ['-D', home.cluster], {
      cwd: home.folder,
      detached: true,
      stdio: ['ignore', log.file.fd, log.file.fd],
      // A stale lock file names a process that is not our server (see findServer). PostgreSQL takes any live process
      // for a server, except its own grandparent, as which pg_ctl passes itself too.
      env: serverEnvironment(stale === undefined ? {} : { PG_GRANDPARENT_PID: String(stale.pid) }),
      ...accountOf(home),
    });
    let ended = false;
    const failed = new Promise<Error>((resolve) => child.once('error', resolve));
    child.once('exit', () => {
      ended = true;
    });
    child.unref();
    if (child.pid === undefined) throw cannotRun(program, await failed);
    while (!ended) {
      const file = await readPostmasterFile(home.cluster);
      if (file?.pid === child.pid && file.status === 'ready' && (await greet(port, password)) === 'ready') {
        return { port, pid: child.pid };
      }
      await sleep(15);
    }
    return { log: (await readFile(log.path)).subarray(log.start).toString('utf8') };
  } finally {
    await log.file.close();
  }
}

async function writeSettings(home: Home, port: number, durability: Durability): Promise<void> {
  const settings = serverSettings(await thisMachine(), port, durability);
  await writeOwned(home, join(home.cluster, settingsFileName), settingsFile(settings));
}

async function writeOwned(home: Home, path: string, content: string): Promise<void> {
  const draft = `${path}.new`;
  await rm(draft, { force: true });
  await writeFile(draft, content, { mode: 0o600 });
  await giveTo(home.user, draft);
  await rename(draft, path);
}

async function thisMachine(): Promise<Machine> {
  const shared = process.platform === 'linux' ? await statfs('/dev/shm').catch(() => undefined) : undefined;
  return {
    // A container's memory limit counts; without one this is 0 or a huge number.
    memory: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
    processors: availableParallelism(),
    sharedMemory: shared === undefined ? undefined : shared.bavail * shared.bsize,
  };
}

function portFile(home: Home): string {
  return join(home.folder, 'port');
}

function startFailed(home: Home, log: string): OperatorError {
  return new OperatorError(
    `The embedded PostgreSQL in ${home.folder} did not start. The end of its log (${serverLogFile(home)}):\n` +
      (log.trim().split('\n').slice(-15).join('\n') || '(nothing, as when the disk is full)'),
  );
}

/**
 * Ends the workers of a killed server. They end by themselves, but a worker in a long query notices late, and blocks a
 * new server. Outside Linux, Annals can only wait.
 */
async function endOrphans(cluster: string): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGTERM', 'SIGKILL'] as const) {
    for (const pid of await processesOf(cluster)) {
      try {
        process.kill(pid, signal);
      } catch {
        // Already ended.
      }
    }
    for (let waited = 0; waited < 2_000; waited += 50) {
      await sleep(50);
      if (process.platform === 'linux' && (await processesOf(cluster)).length === 0) return;
    }
  }
}

async function processesOf(cluster: string): Promise<number[]> {
  if (process.platform !== 'linux') return [];
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 1 && pid !== process.pid);
  const serving = await Promise.all(pids.map((pid) => servesCluster(pid, cluster)));
  return pids.filter((_, index) => serving[index] === true);
}

/** The preferred port if it is free on 127.0.0.1, otherwise any free port. */
export async function freePort(preferred = 0): Promise<number> {
  return (await bind(preferred)) ?? (await bind(0)) ?? 0;
}

function bind(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : undefined));
    });
  });
}

/** The content of a cluster's postmaster.pid (see PostgreSQL's miscadmin.h). */
interface PostmasterFile {
  pid: number;
  port: number;
  /** `starting`, `stopping`, `ready` or `standby`; empty in the first moments. */
  status: string;
}

/** Reads postmaster.pid; undefined if it is missing or incomplete. */
export async function readPostmasterFile(cluster: string): Promise<PostmasterFile | undefined> {
  const text = await readIfThere(join(cluster, 'postmaster.pid'));
  if (text === undefined) return undefined;
  const lines = text.split('\n').map((line) => line.trim());
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isInteger(pid) || pid === 0) return undefined;
  return { pid, port: Number(lines[3] ?? 0), status: lines[7] ?? '' };
}

/** Whether a process with this id exists, under any user. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return hasCode(error, 'EPERM');
  }
}

/**
 * Whether the process is a PostgreSQL of the cluster, by its working folder: process ids are reused, in containers
 * soon. Undefined if the platform cannot tell.
 */
export async function servesCluster(pid: number, cluster: string): Promise<boolean | undefined> {
  if (!isAlive(pid)) return false;
  if (process.platform !== 'linux') return undefined;
  try {
    return (await readlink(`/proc/${pid}/cwd`)) === (await realpath(cluster));
  } catch {
    // Ended, a zombie, or another user's.
    return false;
  }
}
