import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { writeShopFile } from '../import/shop-file.ts';

// What recording over HTTP costs over `annals import` of the same changes: 2,000 changes a gzip request from 4 clients,
// against the command as an operator runs it; in turn, in one run, each into a database of its own.
const { values: settings } = parseArgs({
  options: {
    lines: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    clients: { type: 'string', default: '4' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
  },
});

const launcher = join(import.meta.dirname, '../../bin/annals.js');
const tenant = 'shop';
const template = 'annals_bench_recording_template';
const changesOfRequest = 2_000;
const key = randomBytes(32).toString('base64');

await mkdir(settings.data, { recursive: true });
const file = join(settings.data, `recording-${settings.lines}.ndjson`);
const lines = await changesWithIds();
const requests = Array.from({ length: Math.ceil(lines.length / changesOfRequest) }, (_none, index) =>
  gzipSync(lines.slice(index * changesOfRequest, (index + 1) * changesOfRequest).join('\n')),
);
const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir: settings.data, log: (line) => process.stderr.write(`${line}\n`) });
const server = createPool(embedded.url, { maximum: 1 });
try {
  const client = await makeTemplate();
  const ratios: number[] = [];
  for (let round = 0; round < Number(settings.rounds); round++) {
    const imported = await withDatabase(importFile);
    const sent = await withDatabase((url) => recordOverHttp(url, client));
    ratios.push(imported.seconds / sent.seconds);
    process.stderr.write(
      `import ${imported.seconds.toFixed(2)} s, recorder ${sent.seconds.toFixed(2)} s, ` +
        `${imported.bytes.toFixed(1)} and ${sent.bytes.toFixed(1)} bytes an entry\n`,
    );
  }
  ratios.sort((one, other) => one - other);
  const all = ratios.map((ratio) => ratio.toFixed(2)).join(' ');
  process.stdout.write(`| recorder / import, entries a second | ${all} |\n`);
} finally {
  await server.query(`drop database if exists ${template}`);
  await server.end();
  await embedded.release();
}

async function changesWithIds(): Promise<string[]> {
  const shop = `${file}.shop`;
  await writeShopFile(shop, Number(settings.lines));
  const texts = (await readFile(shop, 'utf8')).trimEnd().split('\n');
  const withIds = texts.map((text, index) => `{"id":"change-${index}",${text.slice(1)}`);
  await writeFile(file, `${withIds.join('\n')}\n`);
  return withIds;
}

interface Run {
  seconds: number;
  /** Bytes that an entry takes, its indexes included. */
  bytes: number;
}

async function importFile(url: string): Promise<number> {
  const begun = performance.now();
  const command = spawn(process.execPath, [launcher, 'import', '--tenant', tenant, file], {
    env: { ...process.env, DATABASE_URL: url, ANNALS_SECRET_KEY: key },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = await once(command, 'exit');
  if (code !== 0) throw new Error(`the import ended with ${code}`);
  return performance.now() - begun;
}

async function recordOverHttp(url: string, authorization: string): Promise<number> {
  const recorder = spawn(process.execPath, [launcher, 'recorder'], {
    env: { ...process.env, DATABASE_URL: url, ANNALS_SECRET_KEY: key, ANNALS_RECORDER_PORT: '0', LOG_LEVEL: 'error' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [baseUrl] = (await once(createInterface({ input: recorder.stdout }), 'line')) as [string];
  const waiting = [...requests.keys()];
  // The first call of a process compiles code.
  await send(baseUrl, authorization, gzipSync(''));
  const begun = performance.now();
  await Promise.all(
    Array.from({ length: Number(settings.clients) }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        await send(baseUrl, authorization, requests[next] ?? gzipSync(''));
      }
    }),
  );
  const milliseconds = performance.now() - begun;
  recorder.kill('SIGTERM');
  await once(recorder, 'exit');
  return milliseconds;
}

async function send(baseUrl: string, authorization: string, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const headers = { authorization, 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' };
  const answer = await fetch(`${baseUrl}/recorder/${tenant}/changes?strict=true`, { method: 'POST', headers, body });
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
}

async function withDatabase(work: (url: string) => Promise<number>): Promise<Run> {
  const name = `annals_bench_recording_${randomBytes(4).toString('hex')}`;
  await server.query(`create database ${name} template ${template}`);
  await server.query('checkpoint');
  try {
    const milliseconds = await work(urlOf(name));
    const pool = createPool(urlOf(name), { maximum: 1 });
    const { rows } = await pool.query<{ entries: number; bytes: number }>(
      `select count(*)::integer as entries, pg_total_relation_size('change_entry')::float8 as bytes from change_entry`,
    );
    await pool.end();
    const [{ entries, bytes } = { entries: 0, bytes: 0 }] = rows;
    if (entries !== lines.length) throw new Error(`${entries} of ${lines.length} changes are entries`);
    return { seconds: milliseconds / 1000, bytes: bytes / entries };
  } finally {
    await server.query(`drop database ${name} with (force)`);
  }
}

/** A database with the schema, the tenant and a client, whose credentials it returns. */
async function makeTemplate(): Promise<string> {
  await server.query(`drop database if exists ${template}`);
  await server.query(`create database ${template}`);
  const pool = createPool(urlOf(template), { maximum: 2 });
  const db = createDatabase(pool);
  try {
    await migrate(pool);
    await createTenant(db, tenant);
    const scope = 'recorder.change_record recorder.actor_set';
    const { clientId, clientSecret } = await createClient(db, { tenant, scope, name: 'Shop' });
    return `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
  } finally {
    await db.destroy();
  }
}

function urlOf(database: string): string {
  const url = new URL(embedded.url);
  url.pathname = database;
  return url.href;
}
