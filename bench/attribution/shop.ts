import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { median, printTable } from '../figures.ts';
import { processTime } from '../processor-time.ts';
import { onServer, openBenchServer, urlOf } from '../server.ts';

// The processor time of examples/fastify-drizzle for a request, with attribution and without, in turn.
const { values: settings } = parseArgs({
  options: { rounds: { type: 'string', default: '60' }, requests: { type: 'string', default: '400' } },
});
const [rounds, requests] = [Number(settings.rounds), Number(settings.requests)];
const folder = join(import.meta.dirname, '../../examples/fastify-drizzle');

/** Loaded before the shop: `attribute` and the middleware do nothing. */
const withoutAttribution = `
  import { registerHooks } from 'node:module';
  const sources = {
    '@annals/client/pg': 'export const attribute = (pool) => pool;',
    '@annals/client/context': 'export const fastify = () => async () => {};',
  };
  registerHooks({
    resolve: (specifier, context, next) =>
      sources[specifier] === undefined
        ? next(specifier, context)
        : { url: 'data:text/javascript,' + encodeURIComponent(sources[specifier]), shortCircuit: true },
  });`;

interface Shop {
  readonly child: ChildProcess;
  readonly url: string;
  readonly agent: Agent;
}

async function start(databaseUrl: string, args: string[]): Promise<Shop> {
  const child = spawn(process.execPath, [...args, 'server.ts'], {
    cwd: folder,
    env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [url] = await once(createInterface(child.stdout), 'line');
  return { child, url, agent: new Agent({ keepAlive: true, maxSockets: 8 }) };
}

async function send({ url, agent }: Shop, method: string, path: string, body?: object): Promise<void> {
  const headers = { authorization: 'Bearer jane', ...(body && { 'content-type': 'application/json' }) };
  const sent = request(`${url}${path}`, { method, agent, headers });
  sent.end(body && JSON.stringify(body));
  const [answer] = await once(sent, 'response');
  const answered = await text(answer);
  if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${answered}`);
}

const read = (shop: Shop) => send(shop, 'GET', '/orders');
const order = (shop: Shop, n: number) => send(shop, 'POST', '/orders', { product: 1 + (n % 64), quantity: 1 });
const cancel = (shop: Shop, n: number) => send(shop, 'POST', `/orders/${1 + (n % 1000)}/cancel`);
const kinds: [what: string, run: (shop: Shop, n: number) => Promise<void>][] = [
  ['Reads', read],
  ['Orders: a transaction with two writes', order],
  ['Cancellations: one write', cancel],
  ['Four reads to one order and one cancellation', (shop, n) => ([order, cancel][n % 6] ?? read)(shop, n)],
];

/** Milliseconds of processor time of the shop for a request. */
async function measure(shop: Shop, run: (shop: Shop, n: number) => Promise<void>): Promise<number> {
  const pid = shop.child.pid ?? 0;
  const before = processTime(pid);
  let next = 0;
  const work = async () => {
    while (next < requests) await run(shop, next++);
  };
  await Promise.all(Array.from({ length: 8 }, work));
  return (processTime(pid) - before) / requests;
}

const server = await openBenchServer();
const shops: Shop[] = [];
try {
  await onServer(server.url, 'drop database if exists bench_shop with (force)');
  await onServer(server.url, 'create database bench_shop');
  // A commit that waits for the disk changes no processor time, but takes long.
  await onServer(server.url, 'alter database bench_shop set synchronous_commit = off');
  const url = urlOf(server.url, 'bench_shop');
  const admin = new pg.Client(url);
  await admin.connect();
  await admin.query(readFileSync(join(folder, 'schema.sql'), 'utf8'));
  await admin.query(`insert into products select n, 'Product', 0 from generate_series(3, 64) n;
    update products set stock = 1000000000;
    insert into orders (product, quantity) select 1, 1 from generate_series(1, 1000)`);
  shops.push(await start(url, ['--import', `data:text/javascript,${encodeURIComponent(withoutAttribution)}`]));
  shops.push(await start(url, []));
  const rows: string[][] = [];
  for (const [what, run] of kinds) {
    const times: number[][] = [[], []];
    for (let round = 0; round < rounds; round++)
      for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const time = await measure(shops[index] as Shop, run);
        // The first rounds load and compile.
        if (round >= rounds / 5) times[index]?.push(time);
      }
    const [without = [], withIt = []] = times;
    const ratios = without.map((time, round) => (withIt[round] ?? Number.NaN) / time);
    rows.push([what, median(without).toFixed(3), median(withIt).toFixed(3), median(ratios).toFixed(3)]);
  }
  printTable(['Requests', 'ms without', 'ms with', 'ratio'], rows);
  await admin.end();
} finally {
  for (const { child, agent } of shops) {
    agent.destroy();
    child.kill();
    await once(child, 'exit');
  }
  await onServer(server.url, 'drop database if exists bench_shop with (force)');
  await server.release();
}
