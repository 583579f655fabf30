import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { gzipSync } from 'node:zlib';
import { createClient } from '../../src/access/oauth/clients.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';

// Prints the processor time of the longest turn of a recorder's event loop while it reads a long request: no other request is answered in it.
const tenant = 'long';
const name = `annals_turns_${randomBytes(4).toString('hex')}`;
const dataDir = join(import.meta.dirname, '../../data/bench');

await mkdir(dataDir, { recursive: true });
const embedded = process.env.DATABASE_URL
  ? { url: process.env.DATABASE_URL, release: async () => {} }
  : await openEmbeddedDatabase({ dataDir, log: (line) => process.stderr.write(`${line}\n`) });
const server = createPool(embedded.url, { maximum: 1 });
await server.query(`create database ${name}`);
const url = Object.assign(new URL(embedded.url), { pathname: name }).href;
const pool = createPool(url, { maximum: 2 });
try {
  await migrate(pool);
  const db = createDatabase(pool);
  await createTenant(db, tenant);
  const { clientId, clientSecret } = await createClient(db, { tenant, scope: 'recorder.change_record', name: 'Long' });
  await run(`Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`);
} finally {
  await pool.end();
  await server.query(`drop database ${name} with (force)`);
  await server.end();
  await embedded.release();
}

async function run(authorization: string): Promise<void> {
  const child = fork(join(import.meta.dirname, 'probed-recorder.ts'), {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: url,
      ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
      ANNALS_RECORDER_PORT: '0',
      LOG_LEVEL: 'warn',
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  try {
    const [baseUrl] = child.stdout === null ? [] : await once(createInterface({ input: child.stdout }), 'line');
    const maxTurn = async (): Promise<number> => {
      const answered = once(child, 'message');
      child.send('tell');
      const [{ maxTurn: milliseconds }] = await answered;
      return milliseconds;
    };
    const post = async (body: Buffer<ArrayBuffer>) => {
      const headers = { authorization, 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' };
      const answer = await fetch(`${baseUrl}/recorder/${tenant}/changes`, { method: 'POST', headers, body });
      if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    };
    // The first requests of a process compile code.
    for (let turn = 0; turn < 5; turn++) await post(lines(200, { a: 1, b: ['c'] }));
    for (const [what, body] of Object.entries(bodies())) {
      await maxTurn();
      await post(body);
      console.log(`${(await maxTurn()).toFixed(0).padStart(6)} ms  ${what}`);
    }
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}

function bodies() {
  const numbers = Array.from({ length: 300_000 }, (_none, index) => index);
  return {
    '2,000 changes of 4 KB': lines(2_000, { note: 'note '.repeat(780) }),
    'a change of 15 MB': lines(1, { note: 'note '.repeat(3_000_000) }),
    'a change of 300,000 values': lines(1, numbers),
  };
}

function lines(count: number, after: unknown): Buffer<ArrayBuffer> {
  const line = () => {
    const id = randomBytes(8).toString('hex');
    return JSON.stringify({ op: 'insert', entity: 'parcel', entityId: id, id, at: new Date().toISOString(), after });
  };
  return gzipSync(Array.from({ length: count }, line).join('\n'));
}
