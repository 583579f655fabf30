import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readMapping } from '../../src/recording/mapping/read-mapping.ts';
import { outboxSql } from '../../src/sources/outbox/outbox-sql.ts';
import { processTime } from '../processor-time.ts';
import { benchFolder, onServer } from '../server.ts';
import { connect, mappingOf, openWorld, start, tenant, untilEntries } from './world.ts';

// What capture and triggers cost: the rate of capture against annals import of the same changes, and what the triggers
// of an outbox add to the application's own writes.
const { values: settings, positionals } = parseArgs({
  allowPositionals: true,
  options: { items: { type: 'string', default: '20000' } },
});
const items = Number(settings.items);
/** Changes of an item: an insert and updates. */
const rounds = 5;
const table = `create table items (id int primary key, version int, title text, price numeric, state text, note text, tags text[],
  changed timestamptz); alter table items replica identity full`;
const insert = `insert into items select n, 0, 'Item ' || n, n * 1.10, 'open', repeat('note ', 10), '{a,b}', '2026-01-02 03:04:05Z'
  from generate_series($1::int, $2::int) n`;
const parts: Record<string, () => Promise<void>> = { rate, triggers };

const world = await openWorld();
const { shop } = world;
try {
  for (const part of positionals.length > 0 ? positionals : Object.keys(parts)) await parts[part]?.();
} finally {
  await world.close();
}

async function rate(): Promise<void> {
  await onServer(shop, `drop table if exists items; ${table}`);
  // The first start makes the slot.
  const first = start(['capture', '--accept-gap'], world);
  await first.ready;
  await first.kill('SIGTERM');
  const client = await connect(shop);
  // Transactions of 1 to 1,000 rows.
  const sizes = [1, 1, 1, 10, 100, 1, 1000, 5, 50];
  for (let round = 0; round < rounds; round++) {
    for (let from = 1, turn = round; from <= items; turn++) {
      const to = Math.min(items, from + (sizes[turn % sizes.length] ?? 1) - 1);
      const update = `update items set version = $3::int, price = price + 1.10, state = 'round ' || $3::int where id between $1 and $2`;
      await client.query(round === 0 ? insert : update, round === 0 ? [from, to] : [from, to, round]);
      from = to + 1;
    }
  }
  await client.end();
  const changes = items * rounds;
  const capture = start(['capture'], world);
  await capture.ready;
  const before = processTime(capture.pid);
  const captured = await untilEntries(world, changes);
  const used = (processTime(capture.pid) - before) / 1000;
  await capture.kill('SIGTERM');

  const file = join(benchFolder, 'changes.ndjson');
  await writeChanges(file);
  await world.renew();
  const importing = start(['import', '--tenant', tenant, file], world);
  const imported = await untilEntries(world, changes);
  await importing.ended;
  const perSecond = (seconds: number) => Math.round(changes / seconds).toLocaleString('en');
  console.log(
    `rate: capture ${perSecond(captured)} changes a second (${used.toFixed(1)} s of processor time), ` +
      `import ${perSecond(imported)} with its start; ratio ${(imported / captured).toFixed(2)}`,
  );
}

/** The same changes as lines of an import. */
async function writeChanges(file: string): Promise<void> {
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
      const change = { entity: 'item', entityId: String(id), at, name: after.title, after };
      const before = documentOf(id, version - 1);
      const line = version === 0 ? { op: 'insert', ...change } : { op: 'update', ...change, before };
      lines.write(`${JSON.stringify(line)}\n`);
    }
  }
  await new Promise<void>((resolve) => void lines.end(resolve));
}

async function triggers(): Promise<void> {
  const kinds = ['without', 'by statement', 'by statement, with a mask', 'by row'] as const;
  for (const size of [1, 100, 1000]) {
    const times = new Map<string, number>(kinds.map((kind) => [kind, Number.POSITIVE_INFINITY]));
    for (let round = 0; round < 3; round++) {
      for (const kind of kinds) {
        await onServer(shop, `drop schema if exists annals cascade; drop table if exists items; ${table}`);
        // A trigger of the application's own makes the outbox write row by row.
        const own = `create or replace function nothing() returns trigger language plpgsql as 'begin return null; end';
          create trigger own after insert on items for each row execute function nothing()`;
        if (kind === 'by row') await onServer(shop, own);
        const rules = kind.endsWith('mask') ? { mask: ['note'] } : {};
        const mapping = mappingOf({ 'public.items': { entity: 'item', name: 'title', ...rules } });
        if (kind !== 'without') await onServer(shop, outboxSql(readMapping(mapping)));
        await onServer(shop, 'drop trigger if exists own on items');
        const client = await connect(shop);
        const count = size === 1 ? 2_000 : 20_000;
        const began = performance.now();
        for (const statement of [insert, 'update items set version = version + 1 where id between $1 and $2']) {
          for (let from = 1; from <= count; from += size) await client.query(statement, [from, from + size - 1]);
        }
        times.set(kind, Math.min(times.get(kind) ?? 0, performance.now() - began));
        await client.end();
      }
    }
    const ratios = kinds
      .slice(1)
      .map((kind) => `${((times.get(kind) ?? 0) / (times.get('without') ?? 1)).toFixed(2)} ${kind}`);
    console.log(`triggers, ${size} rows a statement, times the application's own writes: ${ratios.join('; ')}`);
  }
}
