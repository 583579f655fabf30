import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { createSealer } from '../../../src/core/sealing.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { openSigner } from '../../../src/proof/log/signer.ts';
import { entriesOfRow } from '../../../src/recording/positions.ts';
import { readReceipts } from '../../../src/recording/receipt-store.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import type { Receiver } from '../vendor/receiver.ts';
import { annals, startAnnals } from './command.ts';
import type { TestDatabase } from './database.ts';
import { changeOf } from './history.ts';
import { type Call, contentOf, endOfJob, startExport } from './jobs.ts';
import { tablesWith } from './places-with.ts';

export interface ErasureLaw {
  database: Pick<TestDatabase, 'url' | 'pool' | 'db'>;
  secret: Uint8Array;
  /** A key of proofs; the service may have it too. */
  keyFile: string;
  tenant: string;
  /** Calls a service that exports and delivers to the receiver, with a token of the tenant. */
  call: Call;
  receiver: Receiver;
  kills: number;
  /** Whether the actor has an id, and is erased by it. */
  isById?: boolean;
  /** Milliseconds between two changes by the actor, with the sealing of them, and between two exports. */
  pauses: { changes: number; exports: number };
}

interface Delivered {
  readonly position: number;
  readonly positions?: readonly (readonly [number, number])[];
}

/** Milliseconds until all has to be delivered, and between two looks. */
const maxWait = 120_000;
const look = 100;

/**
 * Erases a document and then an actor, while changes are recorded by the actor's name and the history is sealed,
 * exported and delivered, and kills the command with SIGKILL again and again just after a portion. Returns what is
 * wrong at the end: a name that is left, a change that was not delivered or whose receiver was not notified, a
 * duplicate that is recorded again, a proof that does not hold.
 */
export async function runErasureLaw(law: ErasureLaw) {
  const { database, secret, keyFile, tenant, call, receiver, kills, pauses, isById = false } = law;
  const { pool, db } = database;
  const person = `canary-${tenant}`;
  const entries = 250 * kills;
  const faults: string[] = [];
  const folder = temporaryFolder();
  const signer = openSigner(keyFile, 'annals.example');
  const environment = {
    DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: Buffer.from(secret).toString('base64'),
    ANNALS_PROOF_KEY_FILE: keyFile,
  };
  const run = async (...args: string[]) => await annals(args, environment);

  const at = (i: number) => new Date(Date.now() - 1_000 * i).toISOString();
  const ofPerson = { actor: person, ...(isById && { actorId: `id of ${person}` }) };
  const who = (i: number) => (i % 2 === 0 ? ofPerson : { actor: 'Bob' });
  const of = { op: 'update', entity: 'customer', entityId: person, name: `Name of ${person}`, before: {} };
  const file = join(folder, 'lines');
  const line = (i: number) => JSON.stringify({ ...of, ...who(i), at: at(i), id: `l${i}`, after: { note: person, i } }); // biome-ignore format: one line
  await writeFile(file, Array.from({ length: entries }, (_none, i) => `${line(i)}\n`).join(''));
  const imported = async () => JSON.parse((await run('import', '--tenant', tenant, file)).stdout);
  await imported();
  const target = { type: 'http', url: receiver.url, maxChanges: 200, maxSeconds: 1 };
  const made = await call(`/changelog/${tenant}/subscriptions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'all', from: 'start', maxAge: 'P52W', target }),
  });
  if (made.status !== 201) faults.push(`subscription: ${made.status}`);

  let isOver = false;
  const repeated = async (pause: number, work: (round: number) => Promise<unknown>): Promise<number> => {
    let round = 0;
    for (; !isOver; round += 1) {
      await work(round);
      await sleep(pause);
    }
    return round;
  };
  const record = createRecorder(db, tenant, Date.now, createSealer([secret]));
  /** As if a minute passed before each portion. */
  const seal = async () => {
    await foldHistory(db, tenant);
    await pool.query('update proof_log set signed_at = null where tenant = $1', [tenant]);
    return await sealPortion(db, tenant, { signer, now: () => Date.now() });
  };
  /** The file of an export; undefined where the service had too much to do to begin one. */
  const exported = async (): Promise<string | undefined> => {
    const id = await startExport(call, tenant, { q: 'entity:*', format: 'NDJSON' }).catch(() => undefined);
    if (id === undefined) return undefined;
    await endOfJob(call, tenant, id, 600);
    return await contentOf(call, tenant, id);
  };
  const working = Promise.all([
    repeated(pauses.changes, async (round) => {
      await record([changeOf({ at: Date.now(), entityId: `other${round}`, ...ofPerson })]);
      await seal();
    }),
    repeated(pauses.exports, exported),
  ]);

  const begun = performance.now();
  const subjects = [
    ['--entity', 'customer', '--entity-id', person],
    isById ? ['--actor-id', `id of ${person}`] : ['--actor', person],
  ];
  const erase = (subject: readonly string[]) => ['erase', '--tenant', tenant, ...subject, '--reason', 'law', '--yes'];
  const erased = async () =>
    (await pool.query('select sum(entries)::integer as n from change_erasure where tenant = $1', [tenant])).rows[0].n;
  let [tries, killed, recorded, exports] = [0, 0, 0, 0];
  for (const [place, subject] of subjects.entries()) {
    for (; tries < (kills * (place + 1)) / subjects.length; tries += 1) {
      const before = await erased();
      const running = startAnnals(erase(subject), environment);
      // Until it has erased more than the one before.
      while (running.process.exitCode === null && (await erased()) === before) await sleep(10);
      await sleep(Math.random() * 60);
      running.process.kill('SIGKILL');
      // On a machine with much to do it may come to its end before.
      if ((await running.ended).signal === 'SIGKILL') killed += 1;
    }
    // Somebody who is still recorded cannot be erased to the end.
    isOver = place === subjects.length - 1;
    if (isOver) [recorded, exports] = await working;
    const { code, stderr } = await run(...erase(subject));
    if (code !== 0) faults.push(`erasure ${place}: ${stderr}`);
  }
  while (await seal());
  const seconds = Math.round((performance.now() - begun) / 1_000);

  let newest = await exported();
  while (newest === undefined) newest = await exported();
  if (newest.includes(person)) faults.push('an export has the name');
  const again = await imported();
  if (again.recorded !== 0 || again.duplicate !== entries) faults.push(`again: ${JSON.stringify(again)}`);
  const { rows } = await pool.query(`select distinct entity_id from change_entry where tenant = $1 and document in (
    select document from change_entry where tenant = $1 and entity_id like 'erased-%')`, [tenant]); // biome-ignore format: one line
  if (rows.length !== 1) faults.push(`the document has ${rows.length} names`);

  // Each position was delivered, and each delivered with the name was announced as erased.
  const delivered = async () => {
    const items = receiver.received.flatMap(({ body }) =>
      body.split('\n').flatMap((text) => (text === '' ? [] : [{ text, item: JSON.parse(text) as Delivered }])),
    );
    const came = new Set(items.map(({ item }) => item.position));
    const erasedRanges = items.flatMap(({ item }) => item.positions ?? []);
    const named = items.filter(({ text }) => text.includes(person)).map(({ item }) => item.position);
    const untold = named.filter((position) => !erasedRanges.some(([from, to]) => from <= position && position <= to));
    const { rows: missing } = await sql`
      select from change_position p cross join lateral ${entriesOfRow} as entry
        where p.tenant = ${tenant} and entry.at <> -1 and not p.first + entry.number - 1 = any (${[...came]}::bigint[])`.execute(
      db,
    );
    return { came: came.size, named: named.length, missing: missing.length, untold };
  };
  let outcome = await delivered();
  for (const end = performance.now() + maxWait; outcome.missing + outcome.untold.length > 0; ) {
    if (performance.now() > end) break;
    await sleep(look);
    outcome = await delivered();
  }
  const { came, named, missing, untold } = outcome;
  if (missing > 0) faults.push(`${missing} changes were not delivered`);
  if (untold.length > 0) faults.push(`${untold.length} delivered changes were not told: ${untold.slice(0, 5)}`);

  const tables = await tablesWith(database, person);
  if (tables.length > 0) faults.push(`the name is in ${tables}`);

  const bundle = join(folder, 'bundle');
  await run('proof', 'bundle', '--tenant', tenant, bundle);
  const vkey = (await run('proof', 'vkey', '--tenant', tenant)).stdout.trim();
  const receipts = await readReceipts(db, tenant, { limit: 100_000 });
  const accept = receipts.map(({ position, body }) => `${JSON.parse(body).what.replace(' ', '-')}@${position}`).join();
  const verdict = await run('verify', bundle, '--key', vkey, '--accept', accept);
  if (verdict.code !== 0) faults.push(`verify: ${verdict.stdout.slice(0, 2_000)}`);
  const check = await run('proof', 'check', '--tenant', tenant);
  if (check.code !== 0) faults.push(`check: ${check.stdout.slice(0, 2_000)}`);
  signer.newest.close();
  const figures = {
    kills: killed,
    seconds,
    entries,
    recorded,
    exports,
    delivered: came,
    named,
    receipts: receipts.length,
  };
  return { faults, ...figures, verdict: verdict.stdout.split('\n').slice(-8) };
}
