import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { annals, type RunningCommand, startAnnals } from '../support/server/command.ts';
import { createTestDatabase, type TestDatabase } from '../support/server/database.ts';
import { copyPackage, temporaryFolder } from '../support/server/package-copy.ts';
import { eventually } from '../support/server/patience.ts';

// Whole processes, some of them one after another.
const timeout = 180_000;

let database: TestDatabase;
let environment: Record<string, string>;
const running: RunningCommand[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
  environment = {
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    PORT: '0',
    LOG_LEVEL: 'warn',
  };
});

afterEach(async () => {
  for (const command of running.splice(0)) {
    command.process.kill('SIGKILL');
    await command.ended;
  }
  await database.drop();
});

function serve(packageFolder?: string): RunningCommand {
  const launcher = packageFolder === undefined ? undefined : join(packageFolder, 'bin', 'annals.js');
  const command = startAnnals(['serve'], environment, launcher);
  running.push(command);
  return command;
}

/** The next version: a routine more, and a migration after which this version could read no page of the history. */
async function nextVersion(): Promise<string> {
  const folder = await copyPackage();
  const version = join(folder, 'sql', 'version.txt');
  await writeFile(version, String(Number(await readFile(version, 'utf8')) + 1));
  await writeFile(
    join(folder, 'migrations', '0900-next.sql'),
    'alter table change_entry rename column paths to paths_next;\n',
  );
  await writeFile(
    join(folder, 'sql', 'recording', 'next.sql'),
    `create function next() returns integer language sql as 'select 1'\n`,
  );
  return folder;
}

interface Asked {
  statuses: number[];
  /** What a process said that was not ready. */
  reasons: string[];
}

/** Asks for readiness and a page of the history, again and again, until nobody listens any more. */
async function askUntilGone(baseUrl: string, token: string): Promise<Asked> {
  const asked: Asked = { statuses: [], reasons: [] };
  const headers = { authorization: `Bearer ${token}` };
  for (;;) {
    try {
      const ready = await fetch(`${baseUrl}/health/ready`);
      if (ready.status !== 200) asked.reasons.push(await ready.text());
      asked.statuses.push((await fetch(`${baseUrl}/changelog/acme/changelogs?size=1`, { headers })).status);
    } catch {
      return asked;
    }
    await sleep(20);
  }
}

async function tokenFor(baseUrl: string): Promise<string> {
  await annals(['tenant', 'create', 'acme'], environment);
  const made = await annals(
    ['client', 'create', '--tenant', 'acme', '--scope', 'changelog.changelog_read'],
    environment,
  );
  const { clientId, clientSecret } = JSON.parse(made.stdout);
  const body = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: clientId,
    client_secret: clientSecret,
  });
  const answer = await fetch(`${baseUrl}/oauth/token`, { method: 'POST', body });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  return token;
}

test('a process whose database a newer one migrates is not ready, answers rightly to its end, and ends with 1', {
  timeout,
}, async () => {
  const old = serve();
  const baseUrl = await old.firstLine;
  const asking = askUntilGone(baseUrl, await tokenFor(baseUrl));
  const version = await nextVersion();
  const [next, second] = [serve(version), serve(version)];

  const ended = await old.ended;
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain('Another version of Annals is about to bring the database to its schema');
  const { statuses, reasons } = await asking;
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(reasons[0]).toContain('"status":503,"type":"service_unavailable"');
  expect(reasons[0]).toContain('Another version of Annals is about to bring');

  const nextUrl = await next.firstLine;
  for (const url of [nextUrl, await second.firstLine]) {
    expect((await fetch(`${url}/health/ready`)).status).toBe(200);
  }
  expect((await database.pool.query('select from migration where number = 900')).rowCount).toBe(1);
  expect((await database.pool.query('select next() as n')).rows).toEqual([{ n: 1 }]);
  expect((await database.pool.query('select from schema_change')).rowCount).toBe(0);

  const again = await serve().ended;
  expect(again).toMatchObject({ code: 1, stdout: '' });
  expect(again.stderr).toContain('The database was brought to 0900-next.sql by a newer version of Annals');
  expect((await fetch(`${nextUrl}/health/ready`)).status).toBe(200);
});

test.each([
  [
    'migrations',
    `insert into migration (number, name, checksum) values (901, '0901-later.sql', '')`,
    'The database is at migration 901',
  ],
  [
    'routines',
    `update routine_set set hash = 'another' where replaced_at is null`,
    'The routines of the database are those of another version',
  ],
])('a process whose %s were changed behind its back ends with 1', { timeout }, async (_what, statement, reason) => {
  const service = serve();
  await service.firstLine;
  await database.pool.query(statement);
  const ended = await service.ended;
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain(reason);
});

test('an import ends with 1 when another version migrates, and what it recorded stays', { timeout }, async () => {
  await annals(['tenant', 'create', 'acme'], environment);
  const pipe = join(await temporaryFolder(), 'changes.ndjson');
  await promisify(execFile)('mkfifo', [pipe]);
  const command = startAnnals(['import', '--tenant', 'acme', pipe], environment);
  running.push(command);
  const writer = await open(pipe, 'w');
  onTestFinished(() => writer.close());
  const change = { op: 'insert', entity: 'note', entityId: 'n-1', at: '2026-01-01T00:00:00Z', after: { a: 1 } };
  await writer.write(`${JSON.stringify(change)}\n`);
  await eventually(async () => (await database.pool.query('select from schema_process')).rowCount).toBe(1);
  await database.pool.query(
    `insert into schema_change (newest, routines_hash, announced_at) values (999, 'next', clock_timestamp())`,
  );
  // A read of a pipe ends with what comes through it.
  const comes = setInterval(() => void writer.write('\n').catch(() => {}), 200);
  onTestFinished(() => clearInterval(comes));
  const ended = await command.ended;
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain('Another version of Annals is about to bring the database to its schema');
  expect((await database.pool.query('select from schema_process')).rowCount).toBe(0);
});

test('a process that was killed without a word holds an upgrade up only until it counts as gone', {
  timeout,
}, async () => {
  const old = serve();
  await old.firstLine;
  await eventually(async () => (await database.pool.query('select from schema_process')).rowCount).toBe(1);
  old.process.kill('SIGKILL');
  const next = serve(await nextVersion());
  expect((await fetch(`${await next.firstLine}/health/ready`)).status).toBe(200);
});
