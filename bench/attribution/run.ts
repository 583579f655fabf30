import { performance } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { runWithContext } from '../../clients/typescript/src/context/index.ts';
import { attribute } from '../../clients/typescript/src/pg/index.ts';
import { printTable, quantile } from '../figures.ts';
import { onServer, openBenchServer, urlOf } from '../server.ts';

// What attribution costs an application: the same statements on a client with and one without it, in turn.
const { values: settings } = parseArgs({ options: { rounds: { type: 'string', default: '3000' } } });
const rounds = Number(settings.rounds);
const who = { actor: 'Jane Doe', actorId: 'u-17', correlationId: '0190a7b2-5c1e-7000-8000-000000000001' };

let next = 0;
const tasks: [what: string, run: (client: pg.Client) => Promise<unknown>][] = [
  ['`select` of a row', (client) => client.query('select 1 as one')],
  ['`select` of 1,000 rows', (client) => client.query('select n, n::text from generate_series(1, 1000) n')],
  ['`insert`, alone', (client) => client.query(`insert into items values (${next++}, 'x')`)],
  ['`insert` with values, alone', (client) => client.query('insert into items values ($1, $2)', [next++, 'x'])],
  [
    '`insert` with a name, alone',
    (client) => client.query({ name: 'i', text: 'insert into items values ($1, $2)', values: [next++, 'x'] }),
  ],
  [
    '`begin`, one `insert`, `commit`',
    async (client) => {
      await client.query('begin');
      await client.query('insert into items values ($1, $2)', [next++, 'x']);
      await client.query('commit');
    },
  ],
  [
    '`begin`, ten `insert`, `commit`',
    async (client) => {
      await client.query('begin');
      for (let row = 0; row < 10; row++) await client.query('insert into items values ($1, $2)', [next++, 'x']);
      await client.query('commit');
    },
  ],
];

const server = await openBenchServer();
try {
  await onServer(server.url, 'drop database if exists bench_attribution with (force)');
  await onServer(server.url, 'create database bench_attribution');
  const url = urlOf(server.url, 'bench_attribution');
  const [plain, attributed] = [new pg.Client(url), new pg.Client(url)];
  attribute(attributed);
  const clients = [plain, attributed];
  for (const client of clients) {
    await client.connect();
    // A commit that waits for the disk would hide what is measured.
    await client.query('set synchronous_commit = off');
  }
  await plain.query('create table items (id int primary key, note text)');
  const rows: string[][] = [];
  for (const [what, run] of tasks) {
    const times: number[][] = [[], []];
    for (let round = 0; round < rounds; round++)
      for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const client = clients[index] as pg.Client;
        const start = performance.now();
        await runWithContext(who, () => run(client));
        // The first rounds load and compile.
        if (round >= rounds / 10) times[index]?.push(performance.now() - start);
      }
    const [without = [], withIt = []] = times;
    const at = (share: number) => [quantile(without, share), quantile(withIt, share)] as const;
    const [[fast, fastWith], [usual, usualWith]] = [at(0.1), at(0.5)];
    const figures = [fast, fastWith - fast, usual, usualWith - usual].map((time) => time.toFixed(3));
    rows.push([what, ...figures, (usualWith / usual).toFixed(2)]);
  }
  printTable(['', 'p10, ms without', 'ms more', 'median, ms without', 'ms more', 'ratio'], rows);
  for (const client of clients) await client.end();
  await onServer(server.url, 'drop database bench_attribution with (force)');
} finally {
  await server.release();
}
