import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { pythonTypes } from '../../clients/python/python-types.ts';
import { schemasOf } from '../../clients/typescript/described-schemas.ts';
import { makeSigningKey, signaturesOf } from '../../src/delivery/webhooks/webhook-target.ts';
import { readTransactionInfo } from '../../src/sources/transaction-info.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { fetchedPackages, findPython } from '../support/server/python-program.ts';
import { startTestRecorder } from '../support/server/recorder.ts';
import { startTestServer } from '../support/server/server.ts';
import { openSourceDatabase, startSourceServer } from '../support/server/source-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = join(import.meta.dirname, '..', '..');
const client = join(root, 'clients', 'python');
const python = findPython() ?? 'python3';

const server = closeAfterAll(await startTestServer());
const recorder = closeAfterAll(await startTestRecorder(server));
const source = closeAfterAll(await startSourceServer());
const database = await openSourceDatabase(source);
closeAfterAll({ close: async () => await database.pool.end() });

/** Runs Python's tests in these files against the server. Rejects with what they printed. */
async function pytest(files: readonly string[], folders: readonly (string | undefined)[]): Promise<string> {
  const { clientId, clientSecret } = await server.createClient('acme', { name: 'Shop' });
  const folder = temporaryFolder();
  const documents = await Promise.all(
    [server, recorder].map(async ({ baseUrl }) => await (await fetch(`${baseUrl}/openapi.json`)).text()),
  );
  await writeFile(join(folder, 'openapi.json'), `[${documents.join(',')}]`);
  await writeFile(join(folder, 'webhooks.json'), JSON.stringify(webhooks()));
  try {
    const { stdout } = await promisify(execFile)(python, ['-m', 'pytest', '-q', '-rs', ...files], {
      cwd: client,
      maxBuffer: 1e8,
      env: {
        ...process.env,
        PYTHONDONTWRITEBYTECODE: '1',
        PYTHONPATH: [client, ...folders].filter((one) => one !== undefined).join(':'),
        ANNALS_TEST_URL: server.baseUrl,
        ANNALS_TEST_RECORDER_URL: recorder.baseUrl,
        ANNALS_TEST_CLIENT_ID: clientId,
        ANNALS_TEST_CLIENT_SECRET: clientSecret,
        ANNALS_TEST_DATABASE_URL: database.url,
        ANNALS_TEST_FOLDER: folder,
      },
    });
    return stdout;
  } catch (error) {
    throw new Error(String(Reflect.get(Object(error), 'stdout') ?? error));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Requests as a subscription sends them, with the keys that verify them. */
function webhooks(): object[] {
  const body = '{"type":"change.update","data":{"price":19.900000000000000001,"name":"Ærø 🎈"}}';
  return (['hmac', 'ed25519'] as const).map((algorithm) => {
    const { key, receiver } = makeSigningKey(algorithm);
    const timestamp = Math.floor(Date.now() / 1_000);
    const id = `msg_${randomUUID()}`;
    const signature = signaturesOf({ id, timestamp, body }, [key]);
    const receiverKey = 'secret' in receiver ? receiver.secret : receiver.publicKey;
    return { algorithm, key: receiverKey, id, timestamp, signature, body };
  });
}

test("Python's tests pass on a server, with the frameworks that are there", async () => {
  const output = await pytest([], [fetchedPackages('frameworks')]);
  console.info(output.trimEnd().split('\n').at(-1));
  expect(output).toMatch(/\d+ passed/);
  // CI has all packages, so that no test is skipped unnoticed.
  if (process.env.CI !== undefined) expect(output).not.toMatch(/\d+ skipped/);
});

test('so do those of the client with the current httpx', async () => {
  const current = fetchedPackages('httpx');
  if (current === undefined) return console.info('clients/python/fetch-packages.sh has not run.');
  const output = await pytest(['tests/test_client.py', 'tests/test_recorder.py'], [current]);
  expect(output).toMatch(/\d+ passed/);
});

test("what Python's contexts send is what capture and the relay read", async () => {
  const program = `
import json, sys
from annals._context import Context, wire_text
print(json.dumps([wire_text(Context(**one)) for one in json.load(sys.stdin)]))`;
  const long = '🎈'.repeat(1_000);
  const contexts = [
    { actor: long, actor_id: long, on_behalf_of: { name: long, id: long }, correlation_id: 'x'.repeat(200) },
    { actor_id: 7, on_behalf_of: 'Ærø', context: { a: { b: { c: {} } }, ip: '203.0.113.7', big: 'x'.repeat(4_000) } },
    { actor: '"\\\u007f', context: {} },
    { correlation_id: 'r-1' },
  ];
  const run = promisify(execFile)(python, ['-c', program], { env: { ...process.env, PYTHONPATH: client } });
  run.child.stdin?.end(JSON.stringify(contexts));
  const texts: string[] = JSON.parse((await run).stdout);
  expect(texts.map((text) => readTransactionInfo(text))).toEqual([
    {
      who: { actor: long, actorId: long, onBehalfOf: { name: long, id: long } },
      correlationId: 'x'.repeat(200),
      context: undefined,
    },
    {
      who: expect.objectContaining({ actorId: '7', onBehalfOf: expect.objectContaining({ name: 'Ærø' }) }),
      correlationId: undefined,
      context: expect.stringContaining('203.0.113.7'),
    },
    { who: expect.objectContaining({ actor: '"\\\u007f' }), correlationId: undefined, context: '{}' },
    { who: undefined, correlationId: 'r-1', context: undefined },
  ]);
});

test("mypy finds no fault in Python's sources", async () => {
  const run = promisify(execFile);
  const hasMypy = await run(python, ['-c', 'import mypy']).then(
    () => true,
    () => false,
  );
  if (!hasMypy && process.env.CI === undefined) return console.info('mypy is not installed.');
  const found = await run(python, ['-m', 'mypy', '--cache-dir', '/dev/null'], { cwd: client }).catch((error) => error);
  expect(found.stdout).toContain('Success');
});

test("Python's lines have at most 100 characters", () => {
  const files = globSync('{annals,tests}/**/*.py', { cwd: client });
  expect(files.length).toBeGreaterThan(20);
  const long = files.flatMap((file) =>
    readFileSync(join(client, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => ([...line].length > 100 ? [`${file}:${index + 1}`] : [])),
  );
  expect(long).toEqual([]);
});

test("Python's types are made from what a service and a recorder that run describe", async () => {
  const read = async (file: string) => await readFile(join(client, 'annals', file), 'utf8');
  const [service, ofRecorder] = await Promise.all(
    [server, recorder].map(async ({ baseUrl }) => JSON.parse(await (await fetch(`${baseUrl}/openapi.json`)).text())),
  );
  const [exported, made] = await Promise.all([read('schemas.py'), read('_schemas.py')]);
  expect(pythonTypes(schemasOf(service, ofRecorder), exported)).toBe(made);
});
