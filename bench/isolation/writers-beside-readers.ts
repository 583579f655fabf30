import { Agent, request } from 'node:http';
import { parseArgs } from 'node:util';
import { createRecorder } from '../../src/recording/record-change.ts';
import { changesOf } from './changes.ts';
import { openWorld } from './world.ts';

// How many instances a tenant writes in a second, alone and beside readers of the history in closed loops: readers of
// the same tenant, and of another one. The figures alternate, so that a busy machine makes all of them worse.
const { values } = parseArgs({
  options: {
    writers: { type: 'string', default: '8' },
    readers: { type: 'string', default: '16' },
    seconds: { type: 'string', default: '6' },
    rounds: { type: 'string', default: '3' },
  },
});
const [writers, readers, seconds, rounds] = [values.writers, values.readers, values.seconds, values.rounds].map(Number);
const entries = 20_000;
const agent = new Agent({ keepAlive: true, maxSockets: 64 });

interface Call {
  readonly path: string;
  readonly token: string;
  readonly body?: string;
}

const world = await openWorld();
try {
  const service = await world.startService();
  const tokens = new Map<string, string>();
  for (const tenant of ['writer', 'reader']) {
    tokens.set(tenant, await service.tokenOf(await world.makeTenant(tenant)));
    const record = createRecorder(world.db, tenant, () => Date.now());
    const changes = changesOf(entries);
    for (let begin = 0; begin < changes.length; begin += 2_000) await record(changes.slice(begin, begin + 2_000));
  }
  const write: Call = {
    path: '/schema/writer/custom-entities/THING/instances',
    token: tokens.get('writer') ?? '',
    body: JSON.stringify({ name: 'thing', price: 12.5, lines: [{ sku: 's1', quantity: 2 }] }),
  };
  const read = (tenant: string): Call => ({
    path: `/changelog/${tenant}/changelogs`,
    token: tokens.get(tenant) ?? '',
  });
  const type = {
    path: '/schema/writer/custom-entities',
    token: write.token,
    body: '{"id":"THING","name":{"en":"Thing"}}',
  };
  if ((await call(service.baseUrl, type)) !== 201) throw new Error('no type');

  const phases: [string, Call | undefined][] = [
    ['alone', undefined],
    ['beside readers of the same tenant', read('writer')],
    ['beside readers of another tenant', read('reader')],
  ];
  await measure(service.baseUrl, write, phases[1]?.[1]);
  const measured = new Map<string, Figures[]>();
  for (let round = 0; round < (rounds ?? 3); round++) {
    for (const [name, reading] of phases) {
      measured.set(name, [...(measured.get(name) ?? []), await measure(service.baseUrl, write, reading)]);
    }
  }
  const alone = median((measured.get('alone') ?? []).map(({ writes }) => writes));
  console.log('| writers | writes a second | of those alone | reads a second | load generator, of a core |');
  console.log('|---|---|---|---|---|');
  for (const [name, figures] of measured) {
    const writes = median(figures.map((one) => one.writes));
    const reads = median(figures.map((one) => one.reads));
    const load = median(figures.map((one) => one.load));
    const cells = [name, writes.toFixed(0), (writes / alone).toFixed(2), reads.toFixed(0), load.toFixed(2)];
    console.log(`| ${cells.join(' | ')} |`);
  }
  await service.stop();
} finally {
  agent.destroy();
  await world.close();
}

interface Figures {
  readonly writes: number;
  readonly reads: number;
  /** Processor time of this process, as a share of one core. */
  readonly load: number;
}

async function measure(baseUrl: string, write: Call, read: Call | undefined): Promise<Figures> {
  const until = performance.now() + (seconds ?? 6) * 1_000;
  const before = process.cpuUsage();
  const loop = async (asked: Call, expected: number) => {
    let count = 0;
    for (; performance.now() < until; count++) {
      const status = await call(baseUrl, asked);
      if (status !== expected) throw new Error(`${asked.path}: ${status}`);
    }
    return count;
  };
  const writing = Array.from({ length: writers ?? 8 }, () => loop(write, 201));
  const reading = read === undefined ? [] : Array.from({ length: readers ?? 16 }, () => loop(read, 200));
  const [written, seen] = await Promise.all([Promise.all(writing), Promise.all(reading)]);
  const { user, system } = process.cpuUsage(before);
  const perSecond = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0) / (seconds ?? 6);
  return { writes: perSecond(written), reads: perSecond(seen), load: (user + system) / 1e6 / (seconds ?? 6) };
}

async function call(baseUrl: string, { path, token, body }: Call): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
  const sent = request(
    `${baseUrl}${path}`,
    { agent, headers, method: body === undefined ? 'GET' : 'POST' },
    (answer) => {
      answer.resume();
      answer.once('end', () => resolve(answer.statusCode ?? 0));
    },
  );
  sent.once('error', reject);
  sent.end(body);
  return await promise;
}

function median(figures: readonly number[]): number {
  return [...figures].sort((one, other) => one - other)[Math.floor(figures.length / 2)] ?? 0;
}
