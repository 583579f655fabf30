import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { makeTenant, openBenchServer } from '../server.ts';
import { basicOf, environmentOf, startService } from '../service.ts';

// Prints the processor time of the longest turn of a recorder's event loop while it reads a long request: no other
// request is answered in it.
const server = await openBenchServer();
const { url, db, drop } = await server.create();
const authorization = basicOf(await makeTenant(db, 'long', 'recorder.change_record'));
const recorder = await startService(environmentOf(url), 'recorder');
try {
  // The first requests of a process compile code.
  for (let turn = 0; turn < 5; turn++) await post(lines(200, { a: 1, b: ['c'] }));
  const bodies = {
    '2,000 changes of 4 KB': lines(2_000, { note: 'note '.repeat(780) }),
    'a change of 15 MB': lines(1, { note: 'note '.repeat(3_000_000) }),
    'a change of 300,000 values': lines(
      1,
      Array.from({ length: 300_000 }, (_none, index) => index),
    ),
  };
  for (const [what, body] of Object.entries(bodies)) {
    await recorder.maxTurn();
    await post(body);
    console.log(`${(await recorder.maxTurn()).toFixed(0).padStart(6)} ms  ${what}`);
  }
} finally {
  await recorder.stop();
  await drop();
  await server.release();
}

async function post(body: Buffer<ArrayBuffer>): Promise<void> {
  const headers = { authorization, 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' };
  const answer = await fetch(`${recorder.baseUrl}/recorder/long/changes`, { method: 'POST', headers, body });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
}

function lines(count: number, after: unknown): Buffer<ArrayBuffer> {
  const line = () => {
    const id = randomBytes(8).toString('hex');
    return JSON.stringify({ op: 'insert', entity: 'parcel', entityId: id, id, at: new Date().toISOString(), after });
  };
  return gzipSync(Array.from({ length: count }, line).join('\n'));
}
