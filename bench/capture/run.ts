import { createWriteStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { readMapping } from '../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../src/sources/outbox/outbox-sql.ts';
import { Bystander, type Seen } from './bystander.ts';
import {
  ask,
  connect,
  forget,
  openWorld,
  residentOf,
  start,
  tenant,
  untilEntries,
  usageOf,
  type World,
} from './world.ts';

// What capture costs: its rate against annals import of the same changes, its memory in one large transaction, its lag at half its
// rate, what the triggers of an outbox add to the application's own writes, and what relay and capture take while nothing happens.
const { values: settings, positionals: parts } = parseArgs({
  allowPositionals: true,
  options: {
    items: { type: 'string', default: '20000' },
    large: { type: 'string', default: '1000000' },
    idle: { type: 'string', default: '60' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench-capture') },
  },
});
const items = Number(settings.items);
/** Changes of an item: an insert and updates. */
const rounds = 5;
const table = `create table items (id int primary key, version int, title text, price numeric, state text, note text, tags text[],
  changed timestamptz); alter table items replica identity full`;
const made = `select n, 0, 'Item ' || n, n * 1.10, 'open', repeat('note ', 10), '{a,b}', '2026-01-02 03:04:05Z' from generate_series($1::int, $2::int) n`;

const world = await openWorld(settings.data);
try {
  const wanted = parts.length === 0 ? ['rate', 'large', 'lag', 'triggers', 'idle'] : parts;
  if (wanted.includes('rate')) await rate(world);
  if (wanted.includes('large')) await large(world);
  if (wanted.includes('lag')) await lag(world);
  if (wanted.includes('triggers')) await triggers(world);
  if (wanted.includes('idle')) await idle(world);
} finally {
  await world.close();
}

function tell(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function begin({ shop }: World): Promise<void> {
  await ask(shop, `drop table if exists items; ${table}`);
}

/** Starts capture once, so that there is a slot, and stops it. */
async function makeSlot(of: World): Promise<void> {
  const capture = start(['capture', '--accept-gap'], of);
  await capture.ready;
  await capture.kill('SIGTERM');
}

async function rate(of: World): Promise<void> {
  await begin(of);
  await makeSlot(of);
  const client = await connect(of.shop);
  // Transactions of 1 to 1,000 rows.
  const sizes = [1, 1, 1, 10, 100, 1, 1000, 5, 50];
  for (let from = 1, turn = 0; from <= items; turn++) {
    const to = Math.min(items, from + (sizes[turn % sizes.length] ?? 1) - 1);
    await client.query(`insert into items ${made}`, [from, to]);
    from = to + 1;
  }
  for (let round = 1; round < rounds; round++) {
    for (let from = 1, turn = round; from <= items; turn++) {
      const to = Math.min(items, from + (sizes[turn % sizes.length] ?? 1) - 1);
      await client.query(
        `update items set version = $1::int, price = price + 1.10, state = 'round ' || $1::int where id between $2 and $3`,
        [round, from, to],
      );
      from = to + 1;
    }
  }
  await client.end();
  const changes = items * rounds;
  const capture = start(['capture'], of);
  await capture.ready;
  const before = await usageOf(capture.pid);
  const captured = await untilEntries(of, changes);
  const used = await usageOf(capture.pid);
  await capture.kill('SIGTERM');

  const file = join(settings.data, 'changes.ndjson');
  const lines = createWriteStream(file);
  const at = new Date().toISOString();
  const documentOf = (id: number, version: number) => ({
    id,
    version,
    title: `Item ${id}`,
    price: Number((id * 1.1 + version * 1.1).toFixed(2)),
    state: version === 0 ? 'open' : `round ${version}`,
    note: 'note '.repeat(10),
    tags: ['a', 'b'],
    changed: '2026-01-02T03:04:05Z',
  });
  for (let version = 0; version < rounds; version++) {
    for (let id = 1; id <= items; id++) {
      const after = documentOf(id, version);
      const line = {
        op: version === 0 ? 'insert' : 'update',
        entity: 'item',
        entityId: String(id),
        at,
        name: after.title,
        after,
      };
      lines.write(`${JSON.stringify(version === 0 ? line : { ...line, before: documentOf(id, version - 1) })}\n`);
    }
  }
  await new Promise<void>((resolve) => void lines.end(resolve));
  await forget(of);
  const importing = start(['import', '--tenant', tenant, file], of);
  const imported = await untilEntries(of, changes);
  await importing.ended;
  const perSecond = (seconds: number) => Math.round(changes / seconds).toLocaleString('en');
  tell(
    `rate: capture ${perSecond(captured)} changes a second (${(used.seconds - before.seconds).toFixed(1)} s of processor time), ` +
      `import ${perSecond(imported)} with its start; ratio ${(imported / captured).toFixed(2)}`,
  );
}

async function large(of: World): Promise<void> {
  const rows = Number(settings.large);
  await forget(of);
  await begin(of);
  await makeSlot(of);
  const capture = start(['capture'], of);
  await capture.ready;
  const atRest = await usageOf(capture.pid);
  const bystander = new Bystander(of);
  await bystander.begin();
  await sleep(15_000);
  tell(`another tenant, before: ${seenText(bystander.take())}`);
  await ask(of.shop, `insert into items ${made}`, [1, rows]);
  // Memory over time: whether it is constant or grows with the rows.
  let isOver = false;
  const memory: string[] = [];
  const sampled = (async () => {
    for (; !isOver; await sleep(1_000)) {
      const [done] = await ask(of.annals, 'select changes from capture_position');
      const share = Number(done?.changes ?? 0) / rows;
      if (share >= (memory.length + 1) / 10) memory.push((await residentOf(capture.pid)).toFixed(0));
    }
  })();
  const seconds = await untilEntries(of, rows);
  isOver = true;
  await sampled;
  tell(`another tenant, beside it: ${seenText(bystander.take())}`);
  await bystander.end();
  tell(`memory of capture at each tenth, in MiB: ${memory.join(', ')}`);
  const { mebibytes } = await usageOf(capture.pid);
  await capture.kill('SIGTERM');
  tell(
    `one transaction of ${rows.toLocaleString('en')} rows: ${seconds.toFixed(0)} s after its commit, memory at most ` +
      `${mebibytes.toFixed(0)} MiB, ${atRest.mebibytes.toFixed(0)} MiB idle`,
  );
}

function seenText({ reads, median, p99, longest, foldAges }: Seen): string {
  const milliseconds = (value: number) => `${value.toFixed(0)} ms`;
  return (
    `${reads} reads, median ${milliseconds(median)}, p99 ${milliseconds(p99)}, longest ${milliseconds(longest)}; changes wait for ` +
    `their fold at most ${milliseconds(foldAges.other)}, those of the captured tenant ${milliseconds(foldAges.captured)}`
  );
}

async function lag(of: World): Promise<void> {
  await forget(of);
  await begin(of);
  await makeSlot(of);
  const capture = start(['capture'], of);
  await capture.ready;
  const client = await connect(of.shop);
  const history = await connect(of.annals);
  // 50 rows in each transaction, 40 transactions a second.
  const lags: number[] = [];
  for (let turn = 0; turn < 200; turn++) {
    const began = performance.now();
    await client.query(`insert into items ${made}`, [turn * 50 + 1, turn * 50 + 50]);
    const committed = performance.now();
    if (turn % 10 === 0) {
      for (;;) {
        const { rows } = await history.query('select count(*)::int as count from change_entry');
        if (rows[0].count >= turn * 50 + 50) break;
        await sleep(2);
      }
      lags.push(performance.now() - committed);
    }
    await sleep(Math.max(0, 25 - (performance.now() - began)));
  }
  await Promise.all([client.end(), history.end()]);
  await capture.kill('SIGTERM');
  lags.sort((one, other) => one - other);
  tell(`lag at 2,000 changes a second: median ${lags[10]?.toFixed(0)} ms, longest ${lags.at(-1)?.toFixed(0)} ms`);
}

async function triggers(of: World): Promise<void> {
  const mappingOf = (rules: object) =>
    readMapping(
      JSON.stringify({
        version: 1,
        tenant: { value: tenant },
        tables: { 'public.items': { entity: 'item', name: 'title', ...rules } },
      }),
    );
  const kinds = ['without', 'by statement', 'by statement, with a mask', 'by row'] as const;
  for (const size of [1, 100, 1000]) {
    const times = new Map<string, number>(kinds.map((kind) => [kind, Number.POSITIVE_INFINITY]));
    for (let round = 0; round < 3; round++) {
      for (const kind of kinds) {
        await ask(of.shop, `drop schema if exists annals cascade; drop table if exists items; ${table}`);
        // A trigger of the application's own, which makes Annals write row by row.
        if (kind === 'by row') {
          await ask(
            of.shop,
            `create or replace function nothing() returns trigger language plpgsql as 'begin return null; end';
             create trigger own after insert on items for each row execute function nothing()`,
          );
        }
        if (kind !== 'without')
          await ask(of.shop, outboxSql(mappingOf(kind.endsWith('mask') ? { mask: ['note'] } : {})));
        await ask(of.shop, 'drop trigger if exists own on items');
        const client = await connect(of.shop);
        const count = size === 1 ? 2_000 : 20_000;
        const began = performance.now();
        for (let from = 1; from <= count; from += size)
          await client.query(`insert into items ${made}`, [from, from + size - 1]);
        for (let from = 1; from <= count; from += size) {
          await client.query('update items set version = version + 1 where id between $1 and $2', [
            from,
            from + size - 1,
          ]);
        }
        times.set(kind, Math.min(times.get(kind) ?? 0, performance.now() - began));
        await client.end();
      }
    }
    const ratio = (kind: string) => ((times.get(kind) ?? 0) / (times.get('without') ?? 1)).toFixed(2);
    tell(
      `triggers, ${size} rows a statement, in times of the application's own writes: ` +
        kinds
          .slice(1)
          .map((kind) => `${ratio(kind)} ${kind}`)
          .join('; '),
    );
  }
}

/** Processor time of the source's sessions while nothing happens there, as a share of a core. */
async function idle(of: World): Promise<void> {
  const seconds = Number(settings.idle);
  const names = Array.from({ length: 133 }, (_, index) => `idle_${index}`);
  const columns = Array.from({ length: 12 }, (_, index) => `c${index} text`).join(', ');
  await forget(of);
  await ask(of.shop, 'drop schema if exists annals cascade; drop schema public cascade; create schema public');
  for (const name of names)
    await ask(
      of.shop,
      `create table ${name} (id int primary key, ${columns}, at timestamptz); alter table ${name} replica identity full`,
    );
  const mapping = join(settings.data, 'idle.json');
  const tables = Object.fromEntries(names.map((name) => [`public.${name}`, { entity: name }]));
  await writeFile(mapping, JSON.stringify({ version: 1, tenant: { value: tenant }, tables }));
  await ask(of.shop, outboxSql(readMapping(await readFile(mapping, 'utf8'))));
  const times = async () => {
    const sessions = await ask(of.shop, `select pid from pg_stat_activity where application_name = 'annals'`);
    return new Map(
      await Promise.all(sessions.map(async ({ pid }) => [pid, (await usageOf(Number(pid))).seconds] as const)),
    );
  };
  for (const args of [['relay'], ['capture', '--accept-gap']]) {
    const running = start(args, { ...of, mapping });
    await running.ready;
    await sleep(5_000);
    const before = await times();
    await sleep(seconds * 1_000);
    const after = await times();
    await running.kill('SIGTERM');
    // A session that began meanwhile counts from its start; what one took that has ended is missed.
    const used = [...after].reduce((sum, [pid, time]) => sum + time - (before.get(pid) ?? 0), 0);
    tell(
      `idle: ${args[0]} takes ${((100 * used) / seconds).toFixed(2)} % of a core of the source at ${names.length} tables`,
    );
  }
}
