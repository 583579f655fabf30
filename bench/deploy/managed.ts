// Tries what docs/deploy.md says of managed PostgreSQL: a role that owns its database and nothing else migrates, serves, imports, makes a
// backup and restores it. Usage: node bench/deploy/managed.ts postgres://superuser:password@host:port/postgres

import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import pg from 'pg';
import { tokenOf } from '../access-token.ts';

const [adminUrl] = process.argv.slice(2);
if (adminUrl === undefined) throw new Error('it needs the URL of a superuser');
const role = `annals_try_${randomBytes(4).toString('hex')}`;
const folder = mkdtempSync(join(tmpdir(), 'annals-managed-'));
const secretKey = randomBytes(32).toString('base64');
const admin = new pg.Client(adminUrl);
await admin.connect();

function urlOf(database: string): string {
  const url = new URL(adminUrl ?? '');
  url.username = role;
  url.password = 'try';
  url.pathname = database;
  return url.href;
}

function start(database: string, args: readonly string[]) {
  const environment = {
    ...process.env,
    DATABASE_URL: urlOf(database),
    ANNALS_SECRET_KEY: secretKey,
    PORT: '0',
    LOG_LEVEL: 'warn',
  };
  return spawn(process.execPath, [join(import.meta.dirname, '../../bin/annals.js'), ...args], {
    env: environment,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

async function annals(database: string, args: readonly string[], input = ''): Promise<string> {
  const child = start(database, args);
  child.stdin.end(input);
  const [answer, code] = await Promise.all([text(child.stdout), new Promise((done) => child.once('exit', done))]);
  if (code !== 0) throw new Error(`annals ${args.join(' ')} ended with ${code}`);
  return answer;
}

/** Serves, and answers how many changes the page of the tenant counts. */
async function countServed(database: string, client: { clientId: string; clientSecret: string }): Promise<number> {
  const service = start(database, ['serve']);
  const ended = new Promise((done) => service.once('exit', done));
  try {
    const { value: baseUrl } = await createInterface(service.stdout)[Symbol.asyncIterator]().next();
    const headers = { authorization: `Bearer ${await tokenOf(String(baseUrl), client)}` };
    const page = await fetch(`${baseUrl}/changelog/shop/changelogs?size=1`, { headers });
    return ((await page.json()) as { totalElements: number }).totalElements;
  } finally {
    service.kill('SIGTERM');
    await ended;
  }
}

try {
  await admin.query(`create role ${role} login password 'try'`);
  for (const database of [role, `${role}_restored`]) await admin.query(`create database ${database} owner ${role}`);
  await annals(role, ['migrate']);
  await annals(role, ['tenant', 'create', 'shop']);
  const client = JSON.parse(
    await annals(role, ['client', 'create', '--tenant', 'shop', '--scope', 'changelog.changelog_read']),
  );
  const at = new Date(Date.now() - 60_000).toISOString();
  const lines = Array.from({ length: 5_000 }, (_, id) =>
    JSON.stringify({ op: 'insert', entity: 'order', entityId: `o-${id}`, at, after: { status: 'OPEN', id } }),
  );
  const imported = JSON.parse(await annals(role, ['import', '--tenant', 'shop', '-'], lines.join('\n')));
  const served = await countServed(role, client);
  await annals(role, ['backup', join(folder, 'backup.tar.zst')]);
  await annals(`${role}_restored`, ['restore', join(folder, 'backup.tar.zst')]);
  const restored = await countServed(`${role}_restored`, client);
  const { rows } = await admin.query(
    'select version() as version, (select rolsuper from pg_roles where rolname = $1) as super',
    [role],
  );
  console.log({
    version: rows[0].version.split(' ').slice(0, 2).join(' '),
    superuser: rows[0].super,
    recorded: imported.recorded,
    served,
    restored,
  });
  if (served !== lines.length || restored !== lines.length) process.exitCode = 1;
} finally {
  for (const database of [role, `${role}_restored`])
    await admin.query(`drop database if exists ${database} with (force)`);
  await admin.query(`drop role if exists ${role}`);
  await admin.end();
  rmSync(folder, { recursive: true, force: true });
}
