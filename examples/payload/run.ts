// Payload 3 works as it is, and Annals records its changes: the articles and authors from the log of the database, the orders by
// triggers. Then the history is compared with what Payload's own API answered after each step. See README.md.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Annals } from './annals.ts';
import { openApplication } from './application.ts';
import { type Entry, entriesOf, States, statesOf, text } from './history.ts';
import { childTables, mainTables } from './rows.ts';
import { steps } from './steps.ts';
import { work } from './work.ts';

const server = process.env.SOURCE_URL;
if (server === undefined) throw new Error('SOURCE_URL must name a PostgreSQL with wal_level = logical: see README.md');
const turns = Number(process.env.TURNS ?? 200);
const source = Object.assign(new URL(server), { pathname: 'payload_example' }).href;
const data = join(import.meta.dirname, 'data');
const mapping = join(import.meta.dirname, 'mapping.json');
const mappingOfTriggers = join(import.meta.dirname, 'mapping-of-triggers.json');

await sql(server, ['drop database if exists payload_example with (force)', 'create database payload_example']);
const payload = await openApplication(source);
await rm(data, { recursive: true, force: true });
const annals = new Annals(data, source);
let failed = false;
try {
  const baseUrl = (await annals.start('serve')).trim();
  await annals.run('tenant', 'create', 'acme');
  const token = await tokenOf(baseUrl);
  await sql(source, [await annals.run('outbox', '--mapping', mappingOfTriggers)]);
  console.log(await annals.start('capture', '--mapping', mapping, '--alter'));
  console.log(await annals.start('relay', '--mapping', mappingOfTriggers));

  const answered = new Map(Object.keys(mainTables).map((entity) => [entity, new States()]));
  for (const [name, step] of Object.entries(steps)) {
    await step(payload);
    await look(answered);
    console.log(`done: ${name}`);
  }
  for (let turn = 0; turn < turns; turn++) {
    await work(payload, turn);
    await look(answered);
  }
  console.log(`done: ${turns} more calls`);
  // What is recorded after everything else tells when to compare.
  const last = await payload.create({ collection: 'authors', data: { name: 'The end' } });
  const lastOrder = await payload.create({ collection: 'orders', data: { number: 'The end' } });
  await look(answered);
  await until(baseUrl, token, `entity:author entityId:${last.id}`);
  await until(baseUrl, token, `entity:order entityId:${lastOrder.id}`);

  for (const [entity, states] of answered) {
    const entries = await entriesOf(baseUrl, token, `entity:${entity}`);
    tell(entity, entries, states, differenceOf(states, statesOf(entries)));
  }
  for (const [entity, find] of Object.entries(childTables)) {
    const entries = await entriesOf(baseUrl, token, `entity:${entity}`);
    const alive = (await find(payload)).map(text).sort();
    const recorded = statesOf(entries).alive;
    const rows = text(alive) === text(recorded) ? undefined : `${text(alive)}\n${text(recorded)}`;
    tellRows(entity, entries, alive.length, rows);
  }
} finally {
  await annals.stop();
}
// Payload keeps its connections open.
process.exit(failed ? 1 : 0);

/** Notes the rows of the main tables as the API answers them now. */
async function look(answered: ReadonlyMap<string, States>): Promise<void> {
  for (const [entity, states] of answered) {
    const rows = new Map((await mainTables[entity]?.(payload))?.map((row) => [String(row.id), row]));
    for (const id of states.ids) if (!rows.has(id)) states.add(id, null);
    for (const [id, row] of rows) states.add(id, row);
  }
}

function differenceOf(answered: States, recorded: States): string | undefined {
  for (const id of new Set([...answered.ids, ...recorded.ids])) {
    const [theirs, ours] = [answered.of(id), recorded.of(id)];
    if (text(theirs) !== text(ours)) {
      return `${id}\n  the API:\n    ${theirs.join('\n    ')}\n  the history:\n    ${ours.join('\n    ')}`;
    }
  }
  return undefined;
}

function tell(entity: string, entries: readonly Entry[], states: States, difference: string | undefined): void {
  if (difference !== undefined) failed = true;
  const verdict = difference === undefined ? 'equal' : `NOT EQUAL: ${difference}`;
  console.log(
    `${entity}: ${states.ids.length} documents, ${states.count} changes, ${entries.length} entries: ${verdict}`,
  );
}

function tellRows(entity: string, entries: readonly Entry[], alive: number, difference: string | undefined): void {
  if (difference !== undefined) failed = true;
  const verdict = difference === undefined ? 'equal' : `NOT EQUAL:\n${difference}`;
  const counts = (['create', 'update', 'delete'] as const).map(
    (type) => `${entries.filter((entry) => entry.type === type).length} ${type}s`,
  );
  console.log(`${entity}: ${alive} rows at the end, ${counts.join(', ')}: ${verdict}`);
}

async function until(baseUrl: string, token: string, q: string): Promise<void> {
  for (let attempt = 0; attempt < 600; attempt++) {
    if ((await entriesOf(baseUrl, token, q)).length > 0) return;
    await sleep(100);
  }
  throw new Error(`nothing was recorded of ${q}`);
}

async function tokenOf(baseUrl: string): Promise<string> {
  const scope = 'changelog.changelog_read';
  const client = JSON.parse(await annals.run('client', 'create', '--tenant', 'acme', '--scope', scope));
  const response = await fetch(`${baseUrl}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: client.clientId,
      client_secret: client.clientSecret,
    }),
  });
  return ((await response.json()) as { access_token: string }).access_token;
}

async function sql(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
