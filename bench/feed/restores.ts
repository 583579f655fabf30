import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFile, chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { Annals } from '../../clients/typescript/src/index.ts';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { freePort } from '../../src/postgres/embedded/free-port.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { annals, launcher } from '../../test/support/server/command.ts';
import { changeOf } from '../../test/support/server/history.ts';
import { findPostgresPrograms } from '../../test/support/server/postgres-programs.ts';

// A database is put back under open readers: a stream of the client, and annals tail with a cursor file. 20 changes stay, 20 are
// lost, and 5 or 30 others come after it. Each reader must see all that is in the table at the end, and be told of a reset.
const tenant = 'acme';
const unprivileged = 65_534;
const isRoot = process.getuid?.() === 0;
const as = isRoot ? { uid: unprivileged, gid: unprivileged, cwd: '/' } : { cwd: '/' };
const run = promisify(execFile);
const programs = findPostgresPrograms() ?? '';
if (programs === '') throw new Error('this needs a server: apt-get install postgresql');

const folder = await mkdtemp(join(tmpdir(), 'annals-restores-'));
await chmod(folder, 0o755);
const port = await freePort();
const urlOf = (database: string) => `postgres://annals@127.0.0.1:${port}/${database}`;
const url = urlOf('annals');

async function program(name: string, args: readonly string[]): Promise<void> {
  await run(join(programs, name), [...args], as);
}

async function ownFolder(name: string): Promise<string> {
  const path = join(folder, name);
  await mkdir(path, { mode: 0o700 });
  if (isRoot) await chown(path, unprivileged, unprivileged);
  return path;
}

let server: ChildProcess | undefined;
let archive = '';

async function startServer(folderOfData: string): Promise<void> {
  const command = `archive_command=cp %p ${archive}/%f`;
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'archive_mode=on', command];
  server = spawn(
    join(programs, 'postgres'),
    ['-D', folderOfData, '-p', `${port}`, ...settings.flatMap((one) => ['-c', one])],
    {
      ...as,
      stdio: 'ignore',
    },
  );
  await until('the server', () => statement('select not pg_is_in_recovery() as is_true'));
}

async function stopServer(): Promise<void> {
  const ended = server?.exitCode === null ? once(server, 'exit') : undefined;
  server?.kill('SIGINT');
  await ended;
}

/** The column is_true of a statement; false where there is no server. */
async function statement(text: string, database = 'postgres'): Promise<boolean> {
  const client = new pg.Client(urlOf(database));
  client.on('error', () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ is_true: boolean }>(text);
    return rows[0]?.is_true ?? true;
  } catch (error) {
    if (text.includes('is_true')) return false;
    throw error;
  } finally {
    await client.end().catch(() => {});
  }
}

async function until(what: string, isTrue: () => Promise<boolean> | boolean): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    if (await isTrue()) return;
    await sleep(100);
  }
  throw new Error(`nothing came of it: ${what}`);
}

interface Way {
  /** What is done while the 20 changes that stay are there alone. */
  before(): Promise<void>;
  /** Puts the database back. */
  restore(): Promise<void>;
}

let data = '';
let copies = 0;

async function baseBackup(...more: string[]): Promise<string> {
  copies += 1;
  const copy = await ownFolder(`copy${copies}`);
  await program('pg_basebackup', ['-d', urlOf('postgres'), '-D', copy, '-c', 'fast', '-X', 'stream', ...more]);
  return copy;
}

let kept = '';
const ways: Record<string, Way> = {
  'copy of the files': {
    async before() {
      await stopServer();
      kept = join(folder, `kept${copies}`);
      await run('cp', ['-a', data, kept]);
      await startServer(data);
    },
    async restore() {
      await stopServer();
      data = kept;
      await startServer(data);
    },
  },
  'recovery to a moment': {
    async before() {
      kept = await baseBackup();
      await record(1);
      await statement(`select pg_create_restore_point('here${copies}')`);
    },
    async restore() {
      await statement('select pg_switch_wal()');
      await sleep(1_000);
      await stopServer();
      const settings = `restore_command = 'cp ${archive}/%f %p'\nrecovery_target_name = 'here${copies}'\nrecovery_target_action = promote\n`;
      await appendFile(join(kept, 'postgresql.auto.conf'), settings);
      await writeFile(join(kept, 'recovery.signal'), '');
      data = kept;
      await startServer(data);
    },
  },
  'promoted standby that was behind': {
    async before() {
      kept = await baseBackup();
    },
    async restore() {
      await stopServer();
      data = kept;
      await writeFile(join(kept, 'standby.signal'), '');
      const promoting = until('promotion', () => statement('select pg_promote() as is_true'));
      await startServer(data);
      await promoting;
    },
  },
  'pg_restore beside it, and its name': {
    async before() {
      kept = join(folder, `dump${copies}`);
      await program('pg_dump', ['--format=custom', `--file=${kept}.dump`, url]);
    },
    async restore() {
      await statement('create database restored');
      await program('pg_restore', ['--no-owner', '-d', urlOf('restored'), `${kept}.dump`]);
      await exchange();
    },
  },
  'annals restore beside it, and its name': {
    async before() {
      kept = join(folder, `backup${copies}`);
      const { code, stderr } = await annals(['backup', kept], environmentOf(url));
      if (code !== 0) throw new Error(stderr);
    },
    async restore() {
      await statement('create database restored');
      const { code, stderr } = await annals(['restore', kept], environmentOf(urlOf('restored')));
      if (code !== 0) throw new Error(stderr);
      await exchange();
    },
  },
};

async function exchange(): Promise<void> {
  await statement('alter database annals allow_connections false');
  await statement(`select pg_terminate_backend(pid) from pg_stat_activity where datname in ('annals', 'restored')`);
  await statement('drop database annals with (force)');
  await until('the name', async () => {
    await statement(`select pg_terminate_backend(pid) from pg_stat_activity where datname = 'restored'`);
    return await statement('alter database restored rename to annals').then(
      () => true,
      () => false,
    );
  });
}

const secret = randomBytes(32).toString('base64');
const environmentOf = (databaseUrl: string) => ({
  DATABASE_URL: databaseUrl,
  ANNALS_SECRET_KEY: secret,
  LOG_LEVEL: 'fatal',
});

/** A process of Annals that is started again whenever it ends, as a supervisor does. */
function supervise(
  args: string[],
  environment: object,
  onLine: (line: string) => void,
  onTold: (line: string) => void,
) {
  let child: ChildProcess;
  let isStopped = false;
  let starts = 0;
  const ended = (async () => {
    while (!isStopped) {
      starts += 1;
      child = spawn(process.execPath, [launcher, ...args], {
        env: { PATH: process.env.PATH, ...environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      if (child.stdout) createInterface({ input: child.stdout }).on('line', onLine);
      if (child.stderr) createInterface({ input: child.stderr }).on('line', onTold);
      const [code, signal] = await once(child, 'close');
      if (!isStopped) process.stderr.write(`${args[0]} ended with ${code ?? signal}\n`);
      await sleep(300);
    }
  })();
  return {
    starts: () => starts,
    async stop() {
      isStopped = true;
      child.kill('SIGKILL');
      await ended;
    },
  };
}

let made = 0;
async function record(count: number): Promise<void> {
  const pool = createPool(url, { maximum: 1 });
  pool.on('error', () => {});
  try {
    const changes = Array.from({ length: count }, () => {
      made += 1;
      return changeOf({ at: Date.now(), entity: `entity${made % 50}`, entityId: `${made}` });
    });
    await createRecorder(createDatabase(pool), tenant, Date.now)(changes);
  } finally {
    await pool.end();
  }
}

async function tableIds(): Promise<string[]> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ id: string }>('select entity_id as id from change_entry order by 1');
  await client.end();
  return rows.map(({ id }) => id);
}

interface Change {
  readonly entity: string;
  readonly entityId: string;
}

async function attempt(name: string, way: Way, after: number): Promise<boolean> {
  copies += 1;
  data = await ownFolder(`data${copies}`);
  archive = await ownFolder(`archive${copies}`);
  await program('initdb', ['-D', data, '-U', 'annals', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync']);
  await startServer(data);
  await statement('create database annals');
  await annals(['migrate'], environmentOf(url));
  const pool = createPool(url, { maximum: 1 });
  await createTenant(createDatabase(pool), tenant);
  const client = await createClient(createDatabase(pool), {
    tenant,
    scope: 'changelog.changelog_read',
    name: 'reader',
  });
  await pool.end();

  const servicePort = `${await freePort()}`;
  const service = supervise(
    ['serve'],
    { ...environmentOf(url), PORT: servicePort },
    () => {},
    () => {},
  );
  const seen = { stream: [] as Change[], tail: [] as Change[] };
  const resets = { stream: 0, tail: 0 };
  const cursorFile = join(folder, `cursor-${randomBytes(3).toString('hex')}`);
  const tail = supervise(
    ['tail', '--tenant', tenant, '--after', 'start', '--cursor-file', cursorFile],
    environmentOf(url),
    (line) => seen.tail.push(JSON.parse(line)),
    (line) => {
      if (line.includes('restored to an earlier state')) resets.tail += 1;
    },
  );
  const stop = new AbortController();
  const reading = (async () => {
    const api = new Annals({ baseUrl: `http://127.0.0.1:${servicePort}`, ...client });
    const told = { after: 'start', onLost: () => {}, onReset: () => (resets.stream += 1) };
    for await (const change of api.history.tail(told, { signal: stop.signal })) seen.stream.push(change as Change);
  })().catch((error: unknown) => {
    if (!stop.signal.aborted) process.stderr.write(`the stream has ended: ${error}\n`);
  });
  const haveSeen = async (what: string) => {
    const ids = await tableIds();
    await until(what, () => Object.values(seen).every((changes) => isSuperset(changes, ids))).catch((error) => {
      const missing = Object.entries(seen).map(([kind, changes]) => [
        kind,
        ids.filter((id) => !idsOf(changes).has(id)),
      ]);
      process.stderr.write(`${name}: ${error.message}: missing ${JSON.stringify(missing)}\n`);
    });
    return Object.values(seen).every((changes) => isSuperset(changes, ids));
  };
  try {
    await record(20);
    await haveSeen('what stays');
    await way.before();
    await record(20);
    await haveSeen('what is lost');
    await way.restore();
    await record(after);
    const isWhole = await haveSeen('what came after it');
    const isRight = Object.values(seen).every((changes) =>
      changes.every(({ entity, entityId }) => entity === `entity${Number(entityId) % 50}`),
    );
    const entries = (await tableIds()).length;
    process.stdout.write(
      `${JSON.stringify({ name, after, entries, isWhole, isRight, resets, starts: { service: service.starts(), tail: tail.starts() } })}\n`,
    );
    return isWhole && isRight && resets.stream > 0 && resets.tail > 0;
  } finally {
    stop.abort();
    await Promise.all([service.stop(), tail.stop(), reading]);
    await stopServer();
  }
}

const idsOf = (changes: readonly Change[]) => new Set(changes.map(({ entityId }) => entityId));
const isSuperset = (changes: readonly Change[], ids: readonly string[]) => idsOf(changes).isSupersetOf(new Set(ids));

let isGood = true;
if (isRoot) await chmod(folder, 0o777);
const [wanted = ''] = process.argv.slice(2);
for (const [name, way] of Object.entries(ways)) {
  if (!name.includes(wanted)) continue;
  for (const after of [30, 5]) isGood = (await attempt(name, way, after)) && isGood;
}
await rm(folder, { recursive: true });
process.exit(isGood ? 0 : 1);
