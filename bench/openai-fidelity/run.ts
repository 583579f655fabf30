import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { printTable } from '../figures.ts';
import { makeTenant, openBenchServer } from '../server.ts';
import { environmentOf, startService, tokenOf } from '../service.ts';
import { allCases, type Case, clientsFolder, type Place } from './clients.ts';
import {
  describeFault,
  expectedBody,
  expectedHeaders,
  expectedView,
  type Listed,
  withoutChance,
} from './differences.ts';
import { type Seen, startScriptedVendor } from './vendor.ts';

// Makes each call of each client directly at a scripted vendor and through Annals, and compares the requests that the
// vendor gets and the answers that the client sees. Exits 1 at a difference that is not listed.
const tenant = 'bench';
const key = 'sk-fidelity-key';
const model = 'gpt-5.4';
/** The names of one model: of the tenant's key twice, and of its server. */
const names = [model, `openai/${model}`, `self_hosted/${model}`];

if (!existsSync(join(clientsFolder, 'node_modules'))) {
  console.error('installing the clients …');
  const options = ['install', '--no-audit', '--no-fund', '--no-package-lock'];
  const { status } = spawnSync('npm', options, { cwd: clientsFolder, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw new Error('the clients could not be installed');
}
const server = await openBenchServer();
const database = await server.create();
const vendor = await startScriptedVendor();
const service = await startService(
  environmentOf(database.url, {
    OPENAI_BASE_URL: vendor.baseUrl,
    ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8',
    LOG_LEVEL: 'silent',
  }),
);
const faults: string[] = [];
/** By client and operation. */
const rows = new Map<string, { calls: number; requests: number; listed: Set<Listed> }>();
try {
  const token = await tokenOf(service.baseUrl, await makeTenant(database.db, tenant));
  const items = [
    { key: 'providerApiToken', value: key },
    { key: 'selfHostedProvider', value: { url: vendor.baseUrl, apiKey: key } },
  ];
  await fetch(`${service.baseUrl}/configuration/${tenant}/configurations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(items),
  });
  for (const one of await allCases()) {
    for (const named of names) {
      // The same name for both: some clients write what they know of a model's name.
      const directly = await outcome(one, { baseURL: vendor.baseUrl, apiKey: key, model: named });
      const place = { baseURL: `${service.baseUrl}/openai/${tenant}/v1`, apiKey: token, model: named };
      compare(one, named, directly, await outcome(one, place));
    }
  }
} finally {
  await service.stop();
  vendor.close();
  await database.drop();
  await server.release();
}
printTable(
  ['client', 'operation', 'calls', 'requests', 'listed differences'],
  [...rows].map(([name, { calls, requests, listed }]) => [
    ...name.split('\n'),
    calls,
    requests,
    [...listed].sort().join(', '),
  ]),
);
for (const fault of faults) console.error(fault);
console.error(faults.length === 0 ? 'no other difference' : `${faults.length} other differences`);
process.exitCode = faults.length === 0 ? 0 : 1;

interface Outcome {
  readonly seen: readonly Seen[];
  readonly view: unknown;
}

async function outcome(one: Case, place: Place): Promise<Outcome> {
  const seen = vendor.script(one.replies);
  const view = await one.run(place).catch((error: unknown) => ({ error }));
  return { seen: [...seen], view };
}

/** Whether the client threw. The answers of raw HTTP have a status. */
function isFailure(view: unknown): boolean {
  const { error, status } = Object(view) as { error?: unknown; status?: unknown };
  return error instanceof Error || (typeof status === 'number' && status >= 400);
}

function compare(one: Case, named: string, directly: Outcome, through: Outcome): void {
  const row = rows.getOrInsertComputed(`${one.client}\n${one.operation}`, () => ({
    calls: 0,
    requests: 0,
    listed: new Set<Listed>(),
  }));
  row.calls += 1;
  row.requests += through.seen.length;
  const place = `${one.client}, ${one.operation}, ${one.name}, ${named}`;
  const check = (what: string, expected: unknown, found: unknown) => {
    if (!isDeepStrictEqual(expected, found)) faults.push(`${place}: ${what}\n${describeFault(expected, found)}`);
  };
  const isRefused = one.replies.some(({ status = 200 }) => status >= 400);
  check('whether the client fails', isRefused, isFailure(directly.view));
  check('the number of requests', directly.seen.length, through.seen.length);
  for (const [index, sent] of through.seen.entries()) {
    const first = directly.seen[index];
    if (first === undefined) continue;
    check('path', first.path, sent.path);
    check('headers', expectedHeaders(first.headers, sent.body, row.listed), sent.headers);
    check(
      'body',
      withoutChance(expectedBody(first.body, { ...one, named, model }, row.listed)),
      withoutChance(sent.body),
    );
  }
  check(
    'answer',
    ...expectedView(directly.view, through.view, { isOfServer: named.startsWith('self_hosted/'), listed: row.listed }),
  );
}
