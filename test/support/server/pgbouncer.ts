import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { temporaryFolder } from './package-copy.ts';
import { findPgbouncer } from './pgbouncer-program.ts';

// pgbouncer refuses to run as root: this is "nobody".
const unprivileged = 65_534;

/** Starts pgbouncer in transaction mode before a database, for this test. Returns the URL for DATABASE_URL. */
export async function startPooler(databaseUrl: string): Promise<string> {
  const program = findPgbouncer();
  if (program === undefined) throw new Error('this test needs pgbouncer: apt-get install pgbouncer');
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const listening = await freePort();
  const folder = await temporaryFolder();
  const file = join(folder, 'pgbouncer.ini');
  // Few connections to the server, so that statements of all callers meet all of them.
  const settings = `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listening}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
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
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  while (!(await accepts(listening))) {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended with ${child.exitCode}`);
    await sleep(50);
  }
  return `postgres://${username}:${password}@127.0.0.1:${listening}${pathname}?pooler=transaction`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
