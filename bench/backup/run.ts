import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';

// Records entries, backs them up, restores them into an empty database, and tells seconds, processor time and memory of each.
const { values: settings } = parseArgs({
  options: {
    entries: { type: 'string', default: '1000000' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench-backup') },
  },
});
const launcher = join(import.meta.dirname, '../../bin/annals.js');
const file = join(settings.data, 'backup.tar.zst');
const secretKey = Buffer.alloc(32, 7).toString('base64');

const server = await openEmbeddedDatabase({ dataDir: settings.data, log: console.error });
try {
  await annals(server.url, ['tenant', 'create', 'acme']);
  await annals(server.url, ['import', '--tenant', 'acme', '-'], changes(Number(settings.entries)));
  await annals(server.url, ['backup', file]);
  console.log(`the file has ${Math.round((await stat(file)).size / 1e6)} MB`);
  await annals(await emptyDatabase(), ['restore', file]);
} finally {
  await server.release();
}

/** Runs a command and tells what it took: the peak of its memory as the kernel counts it, once in 100 ms. */
async function annals(url: string, args: string[], input: Iterable<string> = []): Promise<void> {
  const begun = performance.now();
  const env = { PATH: process.env.PATH, DATABASE_URL: url, ANNALS_SECRET_KEY: secretKey };
  const child = spawn(process.execPath, [launcher, ...args], { env, stdio: ['pipe', 'inherit', 'inherit'] });
  let peak = 0;
  const watch = setInterval(async () => {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8').catch(() => '');
    peak = Math.max(peak, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0));
  }, 100);
  const ended = once(child, 'close');
  for (const text of input) if (!child.stdin.write(text)) await once(child.stdin, 'drain');
  child.stdin.end();
  const [code] = await ended;
  clearInterval(watch);
  if (code !== 0) throw new Error(`annals ${args[0]} ended with ${code}`);
  const seconds = ((performance.now() - begun) / 1000).toFixed(1);
  console.log(`${args[0]}: ${seconds} s, ${Math.round(peak / 1024)} MB`);
}

function* changes(count: number): Generator<string> {
  for (let first = 0; first < count; first += 1000) {
    const lines = Array.from({ length: Math.min(1000, count - first) }, (_, n) => JSON.stringify(change(first + n)));
    yield `${lines.join('\n')}\n`;
  }
}

function change(n: number) {
  const at = new Date(Date.UTC(2026, 0, 1) + ((n * 7_919_000) % 20_000_000_000)).toISOString();
  const [before, after] = [n, n + 1].map((price) => ({ price, note: (price * 2_654_435_761).toString(36) }));
  return {
    id: `${n}`,
    op: 'update',
    entity: 'order',
    entityId: `${n % 100_003}`,
    at,
    actor: `u${n % 20_011}`,
    before,
    after,
  };
}

async function emptyDatabase(): Promise<string> {
  const client = new pg.Client(server.url);
  await client.connect();
  await client.query('drop database if exists restored with (force)');
  await client.query('create database restored');
  await client.end();
  const url = new URL(server.url);
  url.pathname = 'restored';
  return url.href;
}
