import { setTimeout as sleep } from 'node:timers/promises';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { createDatabase } from '../../src/postgres/database.ts';
import { createRecorder } from '../../src/recording/record-change.ts';
import { changeOf } from '../../test/support/server/history.ts';

// Records changes one by one, each in a transaction of its own, and prints when each commit was acknowledged: number
// and time.
export interface WriterTask {
  url: string;
  tenant: string;
  rate: number;
  seconds: number;
}

const { url, tenant, rate, seconds } = JSON.parse(process.argv[2] ?? '{}') as WriterTask;
const connections = 8;
const pool = createPool(url, { maximum: connections });
const record = createRecorder(createDatabase(pool), tenant, Date.now);
const begun = performance.now();
const changes = rate * seconds;
let made = 0;

async function write(): Promise<void> {
  while (made < changes) {
    const number = made;
    made += 1;
    const wait = begun + (number / rate) * 1_000 - performance.now();
    if (wait > 1) await sleep(wait);
    await record([
      changeOf({ at: Date.now(), entityId: `${number}`, paths: '{"price":{"before":39.90,"after":34.90}}' }),
    ]);
    process.stdout.write(`${number} ${performance.timeOrigin + performance.now()}\n`);
  }
}

await Promise.all(Array.from({ length: connections }, write));
await pool.end();
