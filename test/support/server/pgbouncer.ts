import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from '../temporary-folder.ts';
import { accepts } from './accepts.ts';
import { ownPort } from './own-port.ts';
import { findPgbouncer } from './pgbouncer-program.ts';

// pgbouncer refuses to run as root: this is "nobody".
const unprivileged = 65_534;

export interface Pooler {
  /** For DATABASE_URL. */
  url: string;
  stop(): Promise<void>;
}

export type PoolMode = 'transaction' | 'session';

/** Starts pgbouncer before a database, for this test. Returns the URL for DATABASE_URL. */
export async function startPooler(databaseUrl: string, mode: PoolMode = 'transaction'): Promise<string> {
  // In transaction mode few connections to the server, so that statements of all callers meet all of them.
  const pooler = await openPooler(databaseUrl, mode === 'transaction' ? 4 : 40, mode);
  onTestFinished(pooler.stop);
  return pooler.url;
}

/** The same until it is stopped. `connections`: at most so many to the server. */
export async function openPooler(
  databaseUrl: string,
  connections: number,
  mode: PoolMode = 'transaction',
): Promise<Pooler> {
  const program = findPgbouncer();
  if (program === undefined) throw new Error('this test needs pgbouncer: apt-get install pgbouncer');
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const listening = await ownPort();
  const folder = temporaryFolder();
  const file = join(folder, 'pgbouncer.ini');
  const settings = `[databases]
* = host=${hostname} port=${port} user=${username}${password && ` password=${password}`}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listening}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = ${connections}
max_client_conn = 200
`;
  await writeFile(file, settings);
  const root = process.getuid?.() === 0;
  if (root) await chown(file, unprivileged, unprivileged);
  await chmod(folder, 0o755);
  const child = spawn(program, ['-q', file], {
    stdio: 'ignore',
    ...(root ? { uid: unprivileged, gid: unprivileged } : {}),
  });
  const ended = once(child, 'exit');
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  while (!(await accepts(listening))) {
    if (child.exitCode !== null) {
      await stop();
      throw new Error(`pgbouncer ended with ${child.exitCode}`);
    }
    await sleep(50);
  }
  return { url: `postgres://${username}:${password}@127.0.0.1:${listening}${pathname}?pooler=transaction`, stop };
}
