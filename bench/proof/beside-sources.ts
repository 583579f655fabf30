import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { makeProofKey } from '../../src/history/proof/sealing/make-key.ts';
import { startScript } from '../../test/support/server/script.ts';
import {
  ask,
  connect,
  forget,
  openWorld,
  type Running,
  start,
  tenant,
  untilEntries,
  usageOf,
  type World,
} from '../capture/world.ts';
import { timeOf } from './processor-time.ts';

// What an import and a capture cost while the history is sealed, and while it is not, in turn: processor time of the command and of its
// connections to Annals' database, an entry. Positions are given and entries folded in both.
const { values: settings } = parseArgs({
  options: {
    rounds: { type: 'string', default: '4' },
    entries: { type: 'string', default: '40000' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench-capture') },
  },
});
const entries = Number(settings.entries);
const atOnce = 100;
const keyFile = join(settings.data, 'proof.key');
const file = join(settings.data, 'sealed-import.ndjson');

const world = await openWorld(settings.data);
// Its connections are known by their name.
const measured = { ...world, annals: `${world.annals}?application_name=measured` };
try {
  await writeLines();
  // The first start bundles the sources.
  await forget(world);
  await costOfImport(false);
  const ratios: Record<string, number[]> = { import: [], capture: [] };
  for (let round = 0; round < Number(settings.rounds); round += 1) {
    for (const [what, cost] of Object.entries({ import: costOfImport, capture: costOfCapture })) {
      const costs = { plain: 0, sealed: 0 };
      for (const how of round % 2 === 0 ? (['plain', 'sealed'] as const) : (['sealed', 'plain'] as const)) {
        await forget(world);
        costs[how] = await cost(how === 'sealed');
      }
      ratios[what]?.push(costs.sealed / costs.plain);
      process.stderr.write(`${what}: ${costs.plain.toFixed(0)} µs an entry, sealed ${costs.sealed.toFixed(0)}\n`);
    }
  }
  for (const [what, all] of Object.entries(ratios)) {
    const sorted = all.toSorted((one, other) => one - other);
    process.stdout.write(`${what}: sealed / not sealed ${sorted.map((ratio) => ratio.toFixed(2)).join(' ')}\n`);
  }
} finally {
  await world.close();
}

async function costOfImport(isSealed: boolean): Promise<number> {
  return await beside(isSealed, () => start(['import', '--tenant', tenant, file], measured));
}

async function costOfCapture(isSealed: boolean): Promise<number> {
  await ask(
    world.shop,
    'drop table if exists items; create table items (id int primary key, title text, n int, state text); alter table items replica identity full',
  );
  const first = start(['capture', '--accept-gap'], world);
  await first.ready;
  await first.kill('SIGTERM');
  const client = await connect(world.shop);
  for (let from = 1; from <= entries; from += atOnce) {
    await client.query(`insert into items select n, 'Item ' || n, n, 'open' from generate_series($1::int, $2::int) n`, [
      from,
      from + atOnce - 1,
    ]);
  }
  await client.end();
  return await beside(isSealed, () => start(['capture'], measured));
}

/** Microseconds an entry that a command uses until all entries are there, beside what gives positions and maybe seals. */
async function beside(isSealed: boolean, begin: () => Running): Promise<number> {
  const others = [startScript('position-giver.ts', [world.annals, tenant], 'ignore')];
  if (isSealed) {
    await rm(keyFile, { force: true });
    await rm(`${keyFile}.logs`, { force: true });
    makeProofKey(keyFile);
    others.push(startScript('sealer-process.ts', [world.annals, tenant, keyFile], 'ignore'));
  }
  const command = begin();
  const used = new Map<number, number>();
  let isOver = false;
  const look = async (of: World) => {
    const { seconds } = await usageOf(command.pid);
    used.set(command.pid, Math.max(used.get(command.pid) ?? 0, seconds * 1e6));
    const rows = await ask(of.annals, `select pid from pg_stat_activity where application_name = 'measured'`);
    for (const { pid } of rows) used.set(Number(pid), (await timeOf(Number(pid)))?.own ?? used.get(Number(pid)) ?? 0);
  };
  const looking = (async () => {
    for (; !isOver; await sleep(50)) await look(world);
  })();
  await untilEntries(world, entries);
  isOver = true;
  await looking;
  await look(world);
  await command.kill('SIGTERM');
  for (const other of others) {
    const ended = once(other, 'exit');
    other.kill('SIGKILL');
    await ended;
  }
  if (isSealed) {
    const [row] = await ask(world.annals, 'select count(*)::int as rows from proof_leaf');
    if (row?.rows === 0) throw new Error('nothing was sealed');
  }
  return [...used.values()].reduce((sum, one) => sum + one, 0) / entries;
}

async function writeLines(): Promise<void> {
  const lines = createWriteStream(file);
  const at = Date.now();
  for (let n = 1; n <= entries; n += 1) {
    const change = {
      op: 'insert',
      entity: 'item',
      entityId: String(n),
      at: new Date(at + n).toISOString(),
      name: `Item ${n}`,
    };
    const line = { ...change, actor: 'Bob', after: { id: n, title: `Item ${n}`, n, state: 'open' } };
    if (!lines.write(`${JSON.stringify(line)}\n`)) await once(lines, 'drain');
  }
  lines.end();
  await once(lines, 'close');
}
