import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { sql } from 'kysely';
import { createClient } from '../../src/access/oauth/clients.ts';
import { buildApp } from '../../src/app.ts';
import { type Context, createContext } from '../../src/context/context.ts';
import { readConfig } from '../../src/core/config/config.ts';
import { createPool } from '../../src/postgres/connections/pool.ts';
import { openEmbeddedDatabase } from '../../src/postgres/embedded/open-embedded-database.ts';
import { migrate } from '../../src/postgres/migrate/migrate.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { createSortIndex, dropSortIndex } from '../../src/tenants/custom-entities/sort-indexes.ts';
import { createValueIndex } from '../../src/tenants/custom-entities/value-index.ts';
import { tokenOf } from '../access-token.ts';
import { fill } from './instances.ts';
import { quantile, table } from './table.ts';

// What filters, sorts and far pages of a long list cost, with and without the indexes that an operator can make.
const { values: settings } = parseArgs({
  options: {
    instances: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '3' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
    /** Makes the data and ends. */
    prepare: { type: 'boolean', default: false },
  },
});
const instances = Number(settings.instances);
const indexes = ['price', 'name'];

const always: [string, Record<string, string>][] = [
  ['`name:"Product 7919"`, one match', { q: 'name:"Product 7919"' }],
  ['`name:nobody`, no match', { q: 'name:nobody' }],
  ['`tags:b`, all match', { q: 'tags:b' }],
  ['`tags.0:b`, no match', { q: 'tags.0:b' }],
  ['`name:*79191*`, few matches', { q: 'name:*79191*' }],
  ['`name:~zzz`, a plain expression without match', { q: 'name:~zzz' }],
  ['`name:~79191[0-3]$`, few matches', { q: 'name:~79191[0-3]$' }],
  ['`name:~7[xy]9`, no match and one character required', { q: 'name:~7[xy]9' }],
  ['`category:~[78]$`, 40 different values', { q: 'category:~[78]$', pageNumber: '2000' }],
  ['`nothing:exists`, no match', { q: 'nothing:exists' }],
  ['sort by `createdOn`', { sort: 'createdOn' }],
  ['`pageNumber` 10,000 by `_id`', { pageNumber: '10000' }],
];
const ranged: [string, Record<string, string>][] = [
  ['`price:>4999.9`, few matches', { q: 'price:>4999.9' }],
  ['`price:>4999.9` with its total', { q: 'price:>4999.9', total: 'true' }],
  ['`price:>1` with its total, nearly all match', { q: 'price:>1', total: 'true' }],
  ['`name:Product 79191*`, few matches', { q: 'name:Product 79191*' }],
  ['`name:~"^Product 79191"`, few matches', { q: 'name:~"^Product 79191"' }],
  ['sort by `price`', { sort: 'price' }],
  ['`pageNumber` 10,000 by `price`', { sort: 'price', pageNumber: '10000' }],
];

const database = await openEmbeddedDatabase({ dataDir: settings.data, log: console.error });
try {
  const name = `annals_bench_lists_${instances}`;
  const url = new URL(database.url);
  const server = createPool(url.href, { maximum: 1 });
  const { rows } = await server.query('select from pg_database where datname = $1', [name]);
  if (rows.length === 0) await server.query(`create database ${name}`);
  await server.end();
  url.pathname = name;
  const pool = createPool(url.href);
  await migrate(pool);
  await pool.end();
  const context = await createContext({
    config: readConfig({ LOG_LEVEL: 'silent' }),
    databaseUrl: url.href,
    secretKeys: [randomBytes(32)],
  });
  try {
    await prepare(context);
    if (!settings.prepare) process.stdout.write(`${await measure(context)}\n`);
  } finally {
    await context.close();
  }
} finally {
  await database.release();
}

async function prepare(context: Context): Promise<void> {
  // The keys that another run has left are sealed with another secret.
  await sql`truncate oauth_signing_key`.execute(context.db);
  const { rows } = await sql`select from tenant where tenant = 'bench'`.execute(context.db);
  if (rows.length === 0) {
    await createTenant(context.db, 'bench');
    await fill(context, instances);
  }
  await createValueIndex(context.db);
  for (const sort of indexes) await dropSortIndex(context.db, sort);
  await sql`vacuum analyze custom_instance`.execute(context.db);
}

async function measure(context: Context): Promise<string> {
  const app = await buildApp(context);
  const baseUrl = await app.listen({ port: 0, host: '127.0.0.1' });
  const client = await createClient(context.db, { tenant: 'bench', scope: 'schema.custominstance_read' });
  const authorization = `Bearer ${await tokenOf(baseUrl, client)}`;
  const timeOf = async ({ total, ...parameters }: Record<string, string>) => {
    const query = new URLSearchParams({ pageSize: '60', ...parameters });
    const begun = performance.now();
    const response = await fetch(`${baseUrl}/schema/bench/custom-entities/PRODUCT/instances?${query}`, {
      headers: { authorization, ...(total === undefined ? {} : { 'X-Total-Count': total }) },
    });
    const text = await response.text();
    const took = performance.now() - begun;
    // After 30 seconds.
    if (response.status === 503) return Number.POSITIVE_INFINITY;
    if (response.status !== 200) throw new Error(`${query}: ${response.status} ${text}`);
    return took;
  };
  const figure = async (parameters: Record<string, string>) => {
    const times: number[] = [];
    for (let round = 0; round < Number(settings.rounds); round++) {
      times.push(await timeOf(parameters));
      // What takes long is measured once: it varies little.
      if ((times[0] ?? 0) > 3_000) break;
    }
    return quantile(times, 0.5);
  };
  const shown = (milliseconds: number | undefined) =>
    milliseconds === undefined ? '' : Number.isFinite(milliseconds) ? milliseconds.toFixed(1) : '503';
  const lines: { name: string; before: number; after: number | undefined }[] = [];
  await timeOf({});
  for (const [name, parameters] of [...always, ...ranged]) {
    lines.push({ name, before: await figure(parameters), after: undefined });
    process.stderr.write(`${name}: ${shown(lines.at(-1)?.before)} ms\n`);
  }
  const made: string[] = [];
  for (const sort of indexes) {
    const begun = performance.now();
    const { bytes } = await createSortIndex(context.db, sort);
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    made.push(`\`${sort}\` in ${seconds} s, ${(bytes / 1_048_576).toFixed(0)} MiB`);
  }
  await sql`vacuum analyze custom_instance`.execute(context.db);
  for (const [name, parameters] of ranged) {
    const line = lines.find((one) => one.name === name);
    if (line !== undefined) line.after = await figure(parameters);
    process.stderr.write(`${name} with an index: ${shown(line?.after)} ms\n`);
  }
  await app.close();
  return [
    `${instances.toLocaleString('en')} instances, pages of 60 over HTTP, milliseconds by the clock, median of ${settings.rounds}. Indexes of fields: ${made.join('; ')}.`,
    table(
      ['list', 'without an index of the field', 'with it'],
      lines.map(({ name, before, after }) => [name, shown(before), shown(after)]),
    ),
  ].join('\n\n');
}
