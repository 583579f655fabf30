import { chown, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { findHome } from '../../../src/postgres/embedded/home.ts';
import { openEmbeddedDatabase } from '../../../src/postgres/embedded/open-embedded-database.ts';
import { isAlive, readPostmasterFile, servesCluster } from '../../../src/postgres/embedded/server.ts';
import { trials } from '../../support/oracle/trials.ts';
import { homeOf, makeDataFolder, removeDataFolder } from '../../support/server/data-folder.ts';
import { type Member, startMember } from '../../support/server/member.ts';
import { ownPort } from '../../support/server/own-port.ts';

/** What ends those that a test has left in the database. */
let endings: (() => Promise<void>)[];

// A name that needs quoting in every language that it may pass through.
const dataDir = await makeDataFolder(`my "data" folder, Grüße d'été $HOME`);

beforeEach(() => {
  endings = [];
});

afterEach(async () => {
  for (const end of endings) await end();
  // The last to leave stops the server, even one that killed processes left running.
  if ((await readPostmasterFile(await cluster())) !== undefined) await (await open()).release();
});

afterAll(() => removeDataFolder(dataDir));

test('processes that start at once share one server, and the last to leave stops it', async () => {
  const [first, second, third] = await arriveAtOnce(3);
  expect(new Set([first.url, second.url, third.url]).size).toBe(1);
  const pid = await serverPid();
  for (const member of [second, first]) {
    await member.leave();
    await ask(third.url);
  }
  await third.leave();
  expect(await serverRuns(pid)).toBe(false);
  expect(await readdir(await cluster())).not.toContain('postmaster.pid');
});

test('a server whose processes were all killed is found by the next one, which stops it when it leaves', async () => {
  const [first, second] = await arriveAtOnce(2);
  const pid = await serverPid();
  await first.kill();
  await second.kill();
  const next = await arriveHere();
  expect(await serverPid()).toBe(pid);
  await ask(next.url);
  await next.leave();
  expect(await serverRuns(pid)).toBe(false);
});

test('one that leaves while another arrives leaves it a server that answers', async () => {
  let present = await arrive();
  for (let round = 0; round < trials(2); round++) {
    const [next] = await Promise.all([arrive(), present.leave()]);
    await ask(next.url);
    present = next;
  }
  await present.leave();
});

test('a server that was killed is restarted beside a process that still uses it, at the same address', async () => {
  await keepPort();
  const first = await arrive();
  await ask(first.url, 'set synchronous_commit = on; create table kept (n integer)');
  process.kill(await serverPid(), 'SIGKILL');
  const second = await arriveHere();
  expect(second.url).toBe(first.url);
  await ask(first.url, 'select * from kept');
});

test('a process whose server was killed starts it again by itself', async () => {
  await keepPort();
  const first = await arriveHere();
  process.kill(await serverPid(), 'SIGKILL');
  await expect.poll(() => ask(first.url).catch(() => 'away')).toEqual([{ '?column?': 1 }]);
});

test('what a killed server leaves behind in the middle of a long query does not keep the next one from starting', async () => {
  const first = await arriveHere();
  const busy = new pg.Client(first.url);
  busy.on('error', () => {});
  await busy.connect();
  // Computes without ever waiting, so that it does not notice that its server has gone.
  const query = busy.query('select count(*) from generate_series(1, 10000000000)').catch(() => 'ended');
  await untilActive(first.url, 'generate_series');
  process.kill(await serverPid(), 'SIGKILL');
  const second = await arriveHere();
  await ask(second.url);
  expect(await query).toBe('ended');
});

test('a stale lock file whose process id is now that of another process is no obstacle', async () => {
  await (await arriveHere()).leave();
  const lines = [process.pid, await cluster(), '1700000000', '1', '', '127.0.0.1', '    123       456', 'ready   ', ''];
  await writeForServer('postmaster.pid', lines.join('\n'));
  await ask((await arriveHere()).url);
});

test('where the port of the last time is taken the server takes another one', async () => {
  const first = await arriveHere();
  await first.leave();
  const port = Number(new URL(first.url).port);
  const squatter = await listenOn(port);
  const second = await arriveHere();
  squatter.close();
  expect(new URL(second.url).port).not.toBe(String(port));
  await ask(second.url);
});

test('a cluster that was half made when its process was killed is rebuilt', async () => {
  const fresh = await makeDataFolder();
  // As findHome makes it, so that the half cluster lies where a killed process would have left it.
  const { folder } = await findHome(fresh);
  const half = join(folder, 'cluster.new-1');
  await mkdir(half, { recursive: true });
  await writeFile(join(half, 'PG_VERSION'), '18\n');
  const member = await open(fresh);
  await ask(member.url);
  expect(await readdir(folder)).not.toContain('cluster.new-1');
  await member.release();
  await removeDataFolder(fresh);
});

test('a cluster of another major version is refused with what to do', async () => {
  await (await arriveHere()).leave();
  const path = join(await cluster(), 'PG_VERSION');
  const version = await readFile(path, 'utf8');
  await writeFile(path, '12\n');
  await expect(open()).rejects.toThrow(
    /was made by PostgreSQL 12, and this version of Annals brings PostgreSQL 18\. .*pg_dump/,
  );
  await writeFile(path, version);
});

test('a server that cannot start says so with the end of its log', async () => {
  await (await arriveHere()).leave();
  await writeForServer('own.conf', "no_such_setting = 'x'\n");
  await expect(open()).rejects.toThrow(/did not start\. The end of its log .*no_such_setting/s);
  await writeForServer('own.conf', '');
});

test('the service works in the database as a role that is no superuser, whose password its owner alone may read', async () => {
  const { url } = await arriveHere();
  expect(
    await ask(url, 'select rolsuper, current_database() as name from pg_roles where rolname = current_user'),
  ).toEqual([{ rolsuper: false, name: 'annals' }]);
  expect((await stat(join(await homeOf(dataDir), 'password'))).mode & 0o777).toBe(0o600);
});

async function cluster(): Promise<string> {
  return join(await homeOf(dataDir), 'cluster');
}

/** A file of the cluster, owned by the owner of the cluster, whatever the umask of the tests. */
async function writeForServer(name: string, text: string): Promise<void> {
  const folder = await cluster();
  const path = join(folder, name);
  await writeFile(path, text);
  const { uid, gid } = await stat(folder);
  await chown(path, uid, gid);
}

/** The next server gets a port that no other program takes while it is gone. */
async function keepPort(): Promise<void> {
  const { folder } = await findHome(dataDir);
  await writeFile(join(folder, 'port'), `${await ownPort()}\n`);
}

function open(folder = dataDir) {
  return openEmbeddedDatabase({ dataDir: folder, log: () => {}, durability: 'none' });
}

async function arrive(): Promise<Member> {
  const member = await startMember(dataDir);
  endings.push(member.kill);
  return member;
}

/** The same without a process of its own, where nothing depends on that. A process takes much longer. */
async function arriveHere(): Promise<Pick<Member, 'url' | 'leave'>> {
  const { url, release } = await open();
  endings.push(release);
  return { url, leave: release };
}

async function arriveAtOnce(count: 2): Promise<[Member, Member]>;
async function arriveAtOnce(count: 3): Promise<[Member, Member, Member]>;
async function arriveAtOnce(count: number): Promise<Member[]> {
  return await Promise.all(Array.from({ length: count }, arrive));
}

/** A process that has ended stays visible until its parent takes note, which may be long. */
async function serverRuns(pid: number): Promise<boolean> {
  return (await servesCluster(pid, await cluster())) ?? isAlive(pid);
}

async function serverPid(): Promise<number> {
  const text = await readFile(join(await cluster(), 'postmaster.pid'), 'utf8');
  return Number.parseInt(text, 10);
}

async function ask(url: string, statement = 'select 1'): Promise<unknown[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

async function untilActive(url: string, part: string): Promise<void> {
  const statement = `select 1 from pg_stat_activity where state = 'active' and query like '%${part}%' and pid <> pg_backend_pid()`;
  while ((await ask(url, statement)).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
}

function listenOn(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
