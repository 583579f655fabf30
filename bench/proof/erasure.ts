import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createSealer } from '../../src/core/sealing.ts';
import { makeProofKey } from '../../src/history/proof/sealing/make-key.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { readReceipts } from '../../src/recording/receipts/receipt-store.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { startAnnals } from '../../test/support/server/command.ts';
import { changeOf } from '../../test/support/server/history.ts';
import { contentOf, endOfJob, startExport } from '../../test/support/server/jobs.ts';
import { tablesWith } from '../../test/support/server/places-with.ts';
import { startServices } from '../../test/support/server/service-processes.ts';
import { startReceiver } from '../../test/support/vendor/receiver.ts';
import { startServer } from '../positions/server.ts';

// An erasure that is killed with SIGKILL again and again while a service seals, exports and delivers the history, and somebody records.
const { values: settings } = parseArgs({ options: { kills: { type: 'string', default: '20' } } });
const kills = Number(settings.kills);
const entries = 300 * kills;
const tenant = 'acme';
const person = 'canary-4711';
const scope = 'changelog.changelog_read changelog.subscription_read changelog.subscription_manage';

const server = await startServer();
const folder = await mkdtemp(join(tmpdir(), 'annals-erasure-'));
const receiver = await startReceiver();
const pool = createPool(server.url, { maximum: 3 });
const db = createDatabase(pool);
await migrate(pool);
await createTenant(db, tenant);
const secret = randomBytes(32);
const keyFile = join(folder, 'proof.key');
makeProofKey(keyFile);
const environment = { DATABASE_URL: server.url, ANNALS_SECRET_KEY: secret.toString('base64') };
const services = await startServices(1, {
  ...environment,
  ANNALS_PROOF_KEY_FILE: keyFile,
  ANNALS_DELIVERY_ALLOW: `${tenant}=127.0.0.0/8`,
  LOG_LEVEL: 'fatal',
});
const baseUrl = await services.next();
const { clientId, clientSecret } = await createClient(db, { tenant, scope, name: 'reader' });
const form = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
const answer = await fetch(`${baseUrl}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) });
const { access_token: token } = (await answer.json()) as { access_token: string };
const call = async (path: string, { headers = {}, ...init }: RequestInit = {}) =>
  await fetch(`${baseUrl}${path}`, { ...init, headers: { ...headers, authorization: `Bearer ${token}` } });

const line = (i: number) => ({
  ...{
    op: 'update',
    entity: 'customer',
    entityId: person,
    name: `Name of ${person}`,
    actor: i % 2 === 0 ? person : 'Bob',
  },
  ...{
    at: new Date(Date.now() - 1_000 * i).toISOString(),
    id: `l${i}`,
    before: {},
    after: { note: `of ${person}`, i },
  },
});
const file = join(folder, 'lines');
await writeFile(file, Array.from({ length: entries }, (_none, i) => `${JSON.stringify(line(i))}\n`).join(''));
const run = async (...args: string[]) => await startAnnals(args, environment).ended;
const imported = async () =>
  JSON.parse((await run('import', '--tenant', tenant, file)).stdout) as Record<string, number>;
await imported();
const made = await call(`/changelog/${tenant}/subscriptions`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ name: 'all', from: 'start', maxAge: 'P52W', target: { type: 'http', url: receiver.url, maxChanges: 200, maxSeconds: 1 } }), // biome-ignore format: one line
});
const { id: subscription } = (await made.json()) as { id: string };

let isOver = false;
const record = createRecorder(db, tenant, Date.now, createSealer([secret]));
const repeated = async (work: (round: number) => Promise<void>): Promise<number> => {
  let round = 0;
  for (; !isOver; round += 1) await work(round);
  return round;
};
/** The file of an export; undefined where the service had too much to do to begin one. */
const exported = async (): Promise<string | undefined> => {
  const id = await startExport(call, tenant, { q: 'entity:*', format: 'NDJSON' }).catch(() => undefined);
  if (id === undefined) return undefined;
  await endOfJob(call, tenant, id, 600);
  return await contentOf(call, tenant, id);
};
const working = Promise.all([
  repeated(async (round) => {
    await record([changeOf({ at: Date.now(), entityId: `other${round}`, actor: person })]);
    await sleep(20);
  }),
  repeated(async () => void (await exported())),
]);

const begun = performance.now();
const faults: string[] = [];
const subjects = [
  ['--actor', person],
  ['--entity', 'customer', '--entity-id', person],
];
const erase = (of: readonly string[]) =>
  startAnnals(['erase', '--tenant', tenant, ...of, '--reason', 'law', '--yes'], environment);
for (const [place, of] of subjects.entries()) {
  for (let killed = 0; killed < kills / subjects.length; killed += 1) {
    const running = erase(of);
    // Until it has erased more than the one before, or has ended.
    const erased = async () =>
      Number((await pool.query('select coalesce(sum(entries), 0) as n from change_erasure')).rows[0].n);
    const before = await erased();
    while (running.process.exitCode === null && (await erased()) === before) await sleep(5);
    await sleep(Math.random() * 60);
    running.process.kill('SIGKILL');
    await running.ended;
  }
  const { code, stderr } = await erase(of).ended;
  if (code !== 0) faults.push(`erasure ${place}: ${stderr}`);
}
// What was recorded by the name meanwhile.
isOver = true;
const [recorded, exports] = await working;
const last = await erase(['--actor', person]).ended;
if (last.code !== 0) faults.push(last.stderr);
const seconds = Math.round((performance.now() - begun) / 1_000);

let newest = await exported();
while (newest === undefined) newest = await exported();
if (newest.includes(person)) faults.push('an export has the name');
const again = await imported();
if (again.recorded !== 0 || again.duplicate !== entries) faults.push(`again: ${JSON.stringify(again)}`);

// Until all is sealed and delivered.
interface Shown {
  readonly pending: number;
}
const isDone = async (): Promise<boolean> => {
  const { rows } = await pool.query<{ unsealed: string }>(
    `select (select max(first + cardinality(ats) - 1) from change_position) - coalesce(max(size), 0) as unsealed from proof_log`,
  );
  const shown = (await (await call(`/changelog/${tenant}/subscriptions/${subscription}`)).json()) as Shown;
  return Number(rows[0]?.unsealed) === 0 && shown.pending === 0;
};
while (!(await isDone())) await sleep(1_000);

// Each position came, and each that came with the name is told.
const items = receiver.received.flatMap(({ body }) =>
  body.split('\n').flatMap((text) => (text === '' ? [] : [{ text, item: JSON.parse(text) as Item }])),
);
interface Item {
  readonly type: string;
  readonly position: number;
  readonly positions?: readonly (readonly [number, number])[];
}
const came = new Set(items.map(({ item }) => item.position));
const told = items.flatMap(({ item }) => item.positions ?? []);
const named = items.filter(({ text }) => text.includes(person)).map(({ item }) => item.position);
const untold = named.filter((position) => !told.some(([from, to]) => from <= position && position <= to));
if (untold.length > 0) faults.push(`${untold.length} delivered changes were not told: ${untold.slice(0, 5)}`);
const { rows: missing } = await pool.query(
  `select p.first + at.place - 1 as position from change_position p cross join lateral unnest(p.ats) with ordinality as at (at, place)
    where at.at <> -1 and not p.first + at.place - 1 = any ($1)`,
  [[...came]],
);
if (missing.length > 0) faults.push(`${missing.length} changes were not delivered`);

// A job of an export that was running may have been written to: the tables have its file.
const tables = await tablesWith({ pool }, person);
if (tables.length > 0) faults.push(`the name is in ${tables}`);

const bundle = join(folder, 'bundle');
const proving = { ...environment, ANNALS_PROOF_KEY_FILE: keyFile };
await startAnnals(['proof', 'bundle', '--tenant', tenant, bundle], proving).ended;
const vkey = (await startAnnals(['proof', 'vkey', '--tenant', tenant], proving).ended).stdout.trim();
const receipts = await readReceipts(db, tenant, { limit: 100_000 });
const accept = receipts.map(({ position, body }) => `${JSON.parse(body).what.replace(' ', '-')}@${position}`).join();
const verdict = await run('verify', bundle, '--key', vkey, '--accept', accept);
if (verdict.code !== 0) faults.push(`verify: ${verdict.stdout.slice(0, 2_000)}`);
const check = await startAnnals(['proof', 'check', '--tenant', tenant], proving).ended;
if (check.code !== 0) faults.push(`check: ${check.stdout.slice(0, 2_000)}`);

const figures = {
  kills,
  seconds,
  entries,
  recorded,
  exports,
  delivered: came.size,
  named: named.length,
  receipts: receipts.length,
};
process.stdout.write(`${JSON.stringify({ ...figures, verdict: verdict.stdout.split('\n').slice(-8), faults })}\n`);
await services.end();
await receiver.close();
await pool.end();
await server.stop();
await rm(folder, { recursive: true });
process.exit(faults.length === 0 ? 0 : 1);
