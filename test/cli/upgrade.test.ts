import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, type TestContext, test, vi } from 'vitest';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { annals, type RunningCommand, startAnnals } from '../support/server/command.ts';
import { createTestDatabase, type TestDatabase } from '../support/server/database.ts';
import { installPackage } from '../support/server/package-copy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

// Whole processes, some of them one after another. The tests wait most of their time, so they run at once.
const timeout = 180_000;

/** A database of its own for a test, and processes that use it. They end with the test. */
class World {
  readonly database: TestDatabase;
  readonly environment: Readonly<Record<string, string>>;
  readonly #running: RunningCommand[] = [];

  private constructor(database: TestDatabase) {
    this.database = database;
    this.environment = {
      DATABASE_URL: database.url,
      ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
      PORT: '0',
      LOG_LEVEL: 'warn',
    };
  }

  static async make({ onTestFinished }: TestContext): Promise<World> {
    const world = new World(await createTestDatabase());
    onTestFinished(async () => {
      for (const command of world.#running) {
        command.process.kill('SIGKILL');
        await command.ended;
      }
      await world.database.drop();
    });
    return world;
  }

  start(args: string[], packageFolder?: string, more: Readonly<Record<string, string>> = {}): RunningCommand {
    const launcher = packageFolder === undefined ? undefined : join(packageFolder, 'bin', 'annals.js');
    const command = startAnnals(args, { ...this.environment, ...more }, launcher);
    this.#running.push(command);
    return command;
  }

  serve(packageFolder?: string, more: Readonly<Record<string, string>> = {}): RunningCommand {
    return this.start(['serve'], packageFolder, more);
  }

  /** Resolves when the database knows a process. */
  async registered(): Promise<void> {
    while ((await this.database.pool.query('select from schema_process')).rowCount !== 1) await sleep(50);
  }
}

const folder = temporaryFolder();
/** The folder of the next version. */
const nextVersion = join(folder, 'next');
await mkdir(nextVersion);
await installPackage(nextVersion);
await makeNextVersion(nextVersion);

/** The next version has a routine more, and a migration after which this version could read no page of the history. */
async function makeNextVersion(next: string): Promise<void> {
  const version = join(next, 'sql', 'version.txt');
  await writeFile(version, String(Number(await readFile(version, 'utf8')) + 1));
  await writeFile(
    join(next, 'migrations', '0900-next.sql'),
    'alter table change_entry rename column paths to paths_next;\n',
  );
  await writeFile(
    join(next, 'sql', 'recording', 'next.sql'),
    `create function next() returns integer language sql as 'select 1'\n`,
  );
}

const foldersOfNextVersion = () => ({
  migrations: join(nextVersion, 'migrations'),
  routines: join(nextVersion, 'sql'),
});

interface Answers {
  statuses: number[];
  /** What a process said that was not ready. */
  reasons: string[];
}

/** Requests readiness and a page of the history, again and again, until the server no longer accepts connections. */
async function askUntilGone(baseUrl: string, token: string): Promise<Answers> {
  const answers: Answers = { statuses: [], reasons: [] };
  const headers = { authorization: `Bearer ${token}` };
  for (;;) {
    try {
      const ready = await fetch(`${baseUrl}/health/ready`);
      if (ready.status !== 200) answers.reasons.push(await ready.text());
      answers.statuses.push((await fetch(`${baseUrl}/changelog/acme/changelogs?size=1`, { headers })).status);
    } catch {
      return answers;
    }
    await sleep(200);
  }
}

async function tokenFor(
  baseUrl: string,
  environment: World['environment'],
  scope = 'changelog.changelog_read',
): Promise<string> {
  await annals(['tenant', 'create', 'acme'], environment);
  const made = await annals(['client', 'create', '--tenant', 'acme', '--scope', scope], environment);
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
  concurrent: true,
}, async (context) => {
  const world = await World.make(context);
  const { database, environment } = world;
  const old = world.serve();
  const baseUrl = await old.firstLine;
  const asking = askUntilGone(baseUrl, await tokenFor(baseUrl, environment));
  const next = world.serve(nextVersion);
  // Another process of that version starts at the same time.
  const second = migrate(database.pool, foldersOfNextVersion());

  const ended = await old.ended;
  expect(ended.code).toBe(1);
  expect(ended.stderr).toContain('Another version of Annals is about to bring the database to its schema');
  const { statuses, reasons } = await asking;
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(reasons[0]).toContain('"status":503,"type":"service_unavailable"');
  expect(reasons[0]).toContain('Another version of Annals is about to bring');

  const nextUrl = await next.firstLine;
  await second;
  expect((await fetch(`${nextUrl}/health/ready`)).status).toBe(200);
  expect((await database.pool.query('select from migration where number = 900')).rowCount).toBe(1);
  expect((await database.pool.query('select next() as n')).rows).toEqual([{ n: 1 }]);
  expect((await database.pool.query('select from schema_change')).rowCount).toBe(0);

  const again = await annals(['serve'], environment);
  expect(again).toMatchObject({ code: 1, stdout: '' });
  expect(again.stderr).toContain('The database was brought to 0900-next.sql by a newer version of Annals');
  expect((await fetch(`${nextUrl}/health/ready`)).status).toBe(200);
});

test.for([
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
])(
  'a process whose %s were changed behind its back ends with 1',
  { timeout, concurrent: true },
  async ([, statement = '', reason], context) => {
    const world = await World.make(context);
    const ending = annals(['serve'], world.environment);
    await world.registered();
    await world.database.pool.query(statement);
    const ended = await ending;
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain(reason);
  },
);

test('a process that was killed without a word holds an upgrade up only until it counts as gone', {
  timeout,
  concurrent: true,
}, async (context) => {
  const world = await World.make(context);
  await annals(['tenant', 'create', 'acme'], world.environment);
  const old = world.start(['tail', '--tenant', 'acme']);
  await world.registered();
  old.process.kill('SIGKILL');
  expect(await migrate(world.database.pool, foldersOfNextVersion())).toContain('0900-next.sql');
});

test('a process whose files were replaced says so where it needs one of them, and answers 503', {
  timeout,
  concurrent: true,
}, async (context) => {
  const world = await World.make(context);
  const { database, environment } = world;
  const installed = await mkdtemp(join(folder, 'replaced-'));
  await installPackage(installed);
  const service = world.serve(installed, {
    SMTP_URL: 'smtp://127.0.0.1:1',
    MAIL_FROM: 'annals@example.com',
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
    OPENAI_BASE_URL: 'http://127.0.0.1:1/v1',
  });
  const baseUrl = await service.firstLine;
  const log = logOf(service);
  const token = await tokenFor(baseUrl, environment, 'changelog.changelog_read ai.completion_manage');
  // As where another version was installed: there the parts have other names.
  for (const name of await readdir(join(installed, 'dist')))
    if (/-[\w-]{8}\.js$/.test(name)) await rm(join(installed, 'dist', name));

  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const post = (path: string, body: object) =>
    fetch(`${baseUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const requests = [
    fetch(`${baseUrl}/docs/guides/operations`),
    post('/mcp/acme', { jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    post('/ai-service/acme/completions', { messages: [{ role: 'USER', content: 'Hello' }] }),
  ];
  for (const answer of await Promise.all(requests)) {
    expect([answer.url, answer.status]).toEqual([answer.url, 503]);
    expect(await answer.text()).toContain('This needs a restart of the service.');
  }
  // What was not sent is not charged.
  const usage = await fetch(`${baseUrl}/ai-service/acme/completions/usage`, { headers });
  const nothing = { inputTokens: 0, outputTokens: 0 };
  expect(await usage.json()).toMatchObject({ used: nothing, reserved: nothing });
  await database.pool.query(`insert into mail (tenant, message_id, recipient, subject, content)
    values ('acme', '<1@annals>', 'jane@example.com', 'Hello', 'Hello')`);
  await vi.waitFor(() => expect(log().filter(({ msg }) => msg === 'no mail can be sent')).not.toEqual([]), timeout);
  const errors = log().filter(({ level }) => level === 'error');
  expect(errors.length).toBeGreaterThanOrEqual(4);
  for (const { err } of errors)
    expect(err).toMatchObject({ message: expect.stringMatching(/were replaced .* Restart/) });
  // What was there from the start continues.
  expect((await fetch(`${baseUrl}/changelog/acme/changelogs`, { headers })).status).toBe(200);
});

interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly err?: { readonly message: string };
}

/** What the service has logged from now on. */
function logOf({ process: { stderr } }: RunningCommand): () => LogLine[] {
  let log = '';
  stderr?.on('data', (chunk) => {
    log += chunk;
  });
  return () =>
    log
      .slice(0, log.lastIndexOf('\n') + 1)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
}
