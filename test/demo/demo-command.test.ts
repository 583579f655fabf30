import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { command as demoCommand } from '../../src/cli/commands/demo.ts';
import { scopes } from '../../src/http/scopes.ts';
import { Browser } from '../support/server/browser.ts';
import { copyDataFolder, removeDataFolder } from '../support/server/data-folder.ts';
import { createTestDatabase, type TestDatabase } from '../support/server/database.ts';
import { eventually } from '../support/server/patience.ts';

const execute = promisify(execFile);
const examples = join(import.meta.dirname, '..', '..', 'examples');

interface RunningDemo {
  baseUrl: string;
  /** Everything that is printed for pasting. */
  calls: string;
  /** The address that opens the console. */
  link: string;
  /** Asks it to end, and answers its exit code and what it said on stderr. */
  end(): Promise<{ code: number; stderr: string }>;
}

interface History {
  items: { at: string }[];
  totalElements: number;
}

let database: TestDatabase;
let demo: RunningDemo;

beforeAll(async () => {
  database = await createTestDatabase();
  demo = await startDemo(database.url, ['--ai']);
});

afterAll(() => database.drop());

test('the calls that the demo prints are all answered with entries', async () => {
  const token = await tokenOf(demo);
  const calls = demo.calls.split('\n').filter((line) => line.startsWith('curl -sG '));
  expect(calls).toHaveLength(15);
  const [record, ...others] = demo.calls.split('\n').filter((line) => line.startsWith('curl -s -u '));
  expect(others).toEqual([]);
  expect(await pasteRecording(demo, record ?? '')).toMatchObject({ read: 1, recorded: 1 });
  for (const call of calls) {
    const { status, body } = await paste(demo, call, token);
    expect(status, call).toBe(200);
    expect(body.items.length, call).toBeGreaterThan(0);
  }
});

test('the webhook and the receiver that the demo prints work when they are pasted', async () => {
  const lines = demo.calls.split('\n').filter((line) => /^(?:SUBSCRIPTION|WEBHOOK_SECRET)=/.test(line));
  expect(lines).toHaveLength(2);
  const free = createServer().listen(0, '127.0.0.1');
  await once(free, 'listening');
  const address = free.address();
  free.close();
  const port = String(typeof address === 'object' ? address?.port : address);
  const script = lines.join('\n').replaceAll('4000', port);
  const env = { ...process.env, ANNALS_URL: demo.baseUrl, TOKEN: await tokenOf(demo) };
  const pasted = spawn('sh', ['-c', script], { env, cwd: join(examples, '..'), detached: true });
  let printed = '';
  pasted.stdout.on('data', (chunk: Buffer) => {
    printed += chunk;
  });
  onTestFinished(() => void process.kill(-(pasted.pid ?? 0), 'SIGKILL'));
  await eventually(() => printed).toMatch(
    /^receiving at .+\n(?:change\.(?:create|update|delete) \S+Z product .+\n){5}/,
  );
});

test('the link that the demo prints opens the console, with all scopes', async () => {
  expect(demo.link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/console\/#link=demo\.[\w-]{43}$/);
  const links = await database.pool.query<{ seconds: number }>(
    'select extract(epoch from expires_at - now())::float8 as seconds from console_link',
  );
  expect(links.rows).toHaveLength(1);
  expect(links.rows[0]?.seconds).toBeLessThanOrEqual(600);
  expect(links.rows[0]?.seconds).toBeGreaterThan(400);
  const browser = new Browser(demo);
  const begun = await browser.redeem(new URL(demo.link).hash.slice(1));
  expect(await begun.json()).toMatchObject({ tenant: 'demo', name: 'Demo', scopes });
  expect((await browser.call('/console/api/changelog/demo/changelogs?size=1')).status).toBe(200);
});

test('with --ai any OpenAI client, chats and completions get answers that say they are made up, and costs and a budget are there', async () => {
  const openai = new OpenAI({
    baseURL: exported('OPENAI_BASE_URL', demo.calls),
    apiKey: exported('OPENAI_API_KEY', demo.calls),
  });
  const prompt = { model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Say hello' }] } as const;
  const { choices } = await openai.chat.completions.create({ ...prompt, messages: [...prompt.messages] });
  expect(choices[0]?.message.content).toMatch(/^This answer is made up: .+ “Say hello”$/);
  let streamed = '';
  for await (const chunk of await openai.chat.completions.create({
    ...prompt,
    messages: [...prompt.messages],
    stream: true,
  })) {
    streamed += chunk.choices[0]?.delta.content ?? '';
  }
  expect(streamed).toBe(choices[0]?.message.content);
  // The quick start of the package, whose model is not that of the shared token.
  const quickStart = { model: 'gpt-5.5', instructions: 'You are brief', input: 'Say hello' } as const;
  expect((await openai.responses.create(quickStart)).output_text).toBe(streamed);
  expect((await openai.responses.stream(quickStart).finalResponse()).output_text).toBe(streamed);

  const anthropic = new Anthropic({
    baseURL: exported('ANTHROPIC_BASE_URL', demo.calls),
    authToken: exported('ANTHROPIC_AUTH_TOKEN', demo.calls),
    apiKey: null,
  });
  const message = { model: 'claude-sonnet-4-6', max_tokens: 100, messages: [...prompt.messages] };
  const { content } = await anthropic.messages.create(message);
  expect(content).toMatchObject([{ type: 'text', text: streamed }]);
  expect(await anthropic.messages.stream(message).finalText()).toBe(streamed);
  expect(
    (await anthropic.messages.countTokens({ model: message.model, messages: message.messages })).input_tokens,
  ).toBeGreaterThan(0);

  const token = await tokenOf(demo);
  const call = async (path: string, body?: object) => {
    const response = await fetch(`${demo.baseUrl}${path}`, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    expect(response.status).toBe(200);
    return await response.json();
  };
  // The agent looks into the change history first.
  const chat = { agentId: 'shop-helper', message: 'What is new?' };
  expect(JSON.stringify(await call('/ai-service/demo/agentic/chat', chat))).toMatch(
    /made up.+looked into.+What is new/,
  );
  const costs = (await call('/usage/demo/costs?by=model')) as {
    calls: number;
    costUsd: string;
    callsWithoutCost: number;
  }[];
  expect(costs.length).toBeGreaterThan(3);
  for (const { costUsd, callsWithoutCost } of costs) {
    expect(Number(costUsd)).toBeGreaterThan(0);
    expect(callsWithoutCost).toBe(0);
  }
  // The chats that were paid for are requests of the agent.
  const requests = (await call('/ai-service/demo/agentic/logs/requests?pageSize=500')) as {
    messages: { message: string }[];
  }[];
  const chats = (await call('/usage/demo/calls?q=operation:chat&pageSize=500')) as unknown[];
  expect(requests.length).toBeGreaterThan(100);
  expect(
    requests.filter(({ messages }) => /^Made up\. Call 1 of the model: \d+ prompt/.test(messages[0]?.message ?? '')),
  ).toHaveLength(requests.length - 1);
  // The chat above called the model twice.
  expect(chats).toHaveLength(requests.length + 1);
  const { use } = (await call('/usage/demo/budgets/monthly')) as { use: { spentUsd: string } };
  expect(Number(use.spentUsd)).toBeLessThan(10);
});

test('the type whose history the demo shows is there, with instances as their history left them', async () => {
  const token = await tokenOf(demo);
  const document = await readFile(join(examples, '..', 'docs', 'pagination.md'), 'utf8');
  const [, list = ''] = /^LIST="\$ANNALS_URL(\S+)"$/m.exec(document) ?? [];
  const get = async (path: string, headers = {}) =>
    await fetch(new URL(path, demo.baseUrl), { headers: { authorization: `Bearer ${token}`, ...headers } });
  const total = (await get(list, { 'x-total-count': 'true' })).headers.get('x-total-count');
  // As the guide walks: each page gives the cursor of the next one.
  const claims: { id: string; status: string; amount: number; metadata: { version: number } }[] = [];
  for (let next: string | null = ''; next !== null; ) {
    const response: Response = await get(next === '' ? list : `${list}&next=${next}`);
    claims.push(...((await response.json()) as typeof claims));
    next = response.headers.get('x-next-cursor');
  }
  expect(claims.length).toBeGreaterThan(20);
  expect(total).toBe(String(claims.length));
  expect(claims.map(({ amount }) => amount)).toEqual(claims.map(({ amount }) => amount).toSorted((a, b) => b - a));
  const closed = claims.find(({ status }) => status === 'CLOSED');
  const q = `entity:WARRANTY_CLAIM entityId:${closed?.id} occurredAt:>"1970-01-01T00:00:00Z"`;
  const history = (await (await get(`/changelog/demo/changelogs?${new URLSearchParams({ q })}`)).json()) as {
    totalElements: number;
    items: { paths: Record<string, unknown> }[];
  };
  expect(history.totalElements).toBe(closed?.metadata.version);
  expect(history.items[0]?.paths.status).toMatchObject({ after: 'CLOSED' });
});

test('the scripts under examples run with what the demo prints', async () => {
  const env = Object.fromEntries(
    ['ANNALS_URL', 'ANNALS_RECORDER_URL', 'ANNALS_CLIENT_ID', 'ANNALS_CLIENT_SECRET'].map((name) => [
      name,
      exported(name, demo.calls),
    ]),
  );
  const scripts = (await readdir(examples)).filter((name) => name.endsWith('.ts'));
  expect(scripts.length).toBeGreaterThan(0);
  const runs = [...scripts, 'history.ts entity:product'];
  // One after the other in one process: what they import is loaded once, and what runs is another module of the same
  // file.
  const all = runs.map((run) => {
    const [script, ...args] = run.split(' ');
    const argv = JSON.stringify(['node', script, ...args]);
    return `console.log('\\n-- ${run}'); process.argv = ${argv}; await import('./${script}?${args.length}');`;
  });
  const { stdout: printed } = await execute(process.execPath, ['--input-type=module', '--eval', all.join('\n')], {
    cwd: examples,
    env,
  });
  const parts = printed.split('\n-- ').slice(1);
  expect(parts.map((part) => part.slice(0, part.indexOf('\n')))).toEqual(runs);
  // Two that others import are quiet then.
  const quiet = runs.filter((_run, place) => !/\n./.test(parts[place] ?? ''));
  for (const script of quiet) {
    const { stdout } = await execute(process.execPath, [join(examples, script)], { env });
    expect(stdout, script).not.toBe('');
  }
  expect(quiet.length).toBeLessThanOrEqual(2);
  expect(parts.at(-1)).toMatch(
    /^history.ts entity:product\n\d+ changes on \d+ pages; the latest:\n(\S+Z .+: \w+ product \S+ \(.+\)\n){5}$/,
  );
});

test('with a database of its own the demo seals its history, and its log goes to a file that it names', async () => {
  const folder = await copyDataFolder(inject('initialisedFolder'));
  onTestFinished(() => removeDataFolder(folder));
  const own = await startDemo(undefined, [], { ANNALS_DATA_DIR: folder, LOG_LEVEL: 'info' });
  const authorization = `Bearer ${await tokenOf(own)}`;
  const readLog = async () => await fetch(`${own.baseUrl}/changelog/demo/log`, { headers: { authorization } });
  await eventually(async () => (await readLog()).status).toBe(200);
  const { code, stderr } = await own.end();
  expect(code).toBe(0);
  expect(stderr).toContain(`The log is in ${join(folder, 'demo.log')}.`);
  expect(stderr).not.toContain('"level"');
  expect(await readFile(join(folder, 'demo.log'), 'utf8')).toMatch(/^\{"level":"info".*"msg":"service listening/m);
});

test('a port that is in use is reported before anything is recorded', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = String(typeof address === 'object' ? address?.port : address);
  const empty = await createTestDatabase();
  onTestFinished(() => empty.drop());
  for (const variable of ['PORT', 'ANNALS_RECORDER_PORT']) {
    const run = demoCommand.run([], {
      environment: {
        DATABASE_URL: empty.url,
        ANNALS_SECRET_KEY: secretKey,
        PORT: '0',
        [variable]: port,
        LOG_LEVEL: 'silent',
      },
      stdin: new PassThrough(),
      stdout: new PassThrough(),
      stderr: new PassThrough(),
      answer: () => {},
      tell: () => {},
      stop: new AbortController().signal,
    });
    await expect(run).rejects.toThrow(`port ${port} of 127.0.0.1 is in use; set ${variable} to another one`);
  }
  const { rows } = await empty.pool.query('select from tenant union all select from change_entry');
  expect(rows).toEqual([]);
});

async function startDemo(
  databaseUrl: string | undefined,
  args: string[] = [],
  settings: Record<string, string> = {},
): Promise<RunningDemo> {
  const stop = new AbortController();
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const { promise: ready, resolve } = Promise.withResolvers<string[]>();
  const lines: string[] = [];
  const code = demoCommand.run(args, {
    environment: {
      ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl, ANNALS_SECRET_KEY: secretKey }),
      PORT: '0',
      LOG_LEVEL: 'silent',
      ...settings,
    },
    stdin: new PassThrough(),
    stdout,
    stderr,
    answer: (line) => {
      lines.push(line);
      if (lines.length === 4) resolve(lines);
    },
    tell: (line) => stderr.write(`${line}\n`),
    stop: stop.signal,
  });
  const [baseUrl = '', calls = '', , link = ''] = await Promise.race([ready, code.then(() => [])]);
  return {
    baseUrl,
    calls,
    link,
    async end() {
      stop.abort('SIGTERM');
      const ended = await code;
      stderr.end();
      return { code: ended, stderr: await text(stderr) };
    },
  };
}

const secretKey = randomBytes(32).toString('base64');

async function tokenOf({ baseUrl, calls }: RunningDemo): Promise<string> {
  const credentials = `${exported('ANNALS_CLIENT_ID', calls)}:${exported('ANNALS_CLIENT_SECRET', calls)}`;
  const response = await fetch(`${baseUrl}/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  });
  if (!response.ok) throw new Error(`no token: ${response.status}`);
  const body = (await response.json()) as { access_token: string };
  return body.access_token;
}

function exported(variable: string, calls: string): string {
  return new RegExp(`^export ${variable}=(\\S+)$`, 'm').exec(calls)?.[1] ?? '';
}

async function pasteRecording(running: RunningDemo, call: string): Promise<unknown> {
  const [, path = '', body = ''] =
    /^curl -s -u "\$ANNALS_CLIENT_ID:\$ANNALS_CLIENT_SECRET" \$ANNALS_RECORDER_URL(\S+) -H 'content-type: application\/json' -w '\\n' -d '([^']+)'$/.exec(
      call,
    ) ?? [];
  const { calls } = running;
  const credentials = `${exported('ANNALS_CLIENT_ID', calls)}:${exported('ANNALS_CLIENT_SECRET', calls)}`;
  const response = await fetch(new URL(path, exported('ANNALS_RECORDER_URL', calls)), {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
      'content-type': 'application/json',
    },
    body,
  });
  return await response.json();
}

/** Does what a shell and curl would do with a printed line. */
async function paste(running: RunningDemo, call: string, token: string): Promise<{ status: number; body: History }> {
  const path = /^curl -sG \$ANNALS_URL(\S+) -H "Authorization: Bearer \$TOKEN" /.exec(call)?.[1] ?? '';
  const url = new URL(path, exported('ANNALS_URL', running.calls));
  for (const [, name = '', value = ''] of call.matchAll(/ -d (\w+)=(\S+)/g)) url.searchParams.set(name, value);
  const q = / --data-urlencode 'q=([^']*)'$/.exec(call)?.[1];
  if (q !== undefined) url.searchParams.set('q', q);
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: (await response.json()) as History };
}
