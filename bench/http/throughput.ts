import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { type Load, load } from './load.ts';
import { statementsOf, withRows } from './statements.ts';
import { historyPage, makeWorld, operations, startServer } from './world.ts';

// Requests a second at 64 connections, with one worker and with two, of Annals and of a bare handler that sends the same
// statement and the same answer. The load is made by this process, which takes its share of the machine's cores.
const { values: settings } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '64' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
  },
});
const rounds = Number(settings.rounds);
const seconds = Number(settings.seconds);
const connections = Number(settings.connections);

interface Server {
  name: string;
  baseUrl: string;
  process: ChildProcess;
}

const world = await makeWorld(settings.data);
const servers: Server[] = [];
try {
  for (const workers of ['1', '2']) servers.push(await startAnnals(workers));
  const token = await world.tokenOf(servers[0]?.baseUrl ?? '');
  const statements = withRows(await statementsOf(Object.values(operations), world.environment, token), historyPage);
  for (const workers of ['1', '2']) {
    const environment = { ...world.environment, WORKERS: workers, STATEMENTS: JSON.stringify(statements) };
    servers.push({ name: `bare handler, ${workers}`, ...(await startServer('bare.ts', environment)) });
  }
  const heads = servers.map(({ name }) => `${name} (of one core for the load)`);
  process.stdout.write(`| operation | ${heads.join(' | ')} |\n|---|${servers.map(() => '---:|').join('')}\n`);
  for (const [operation, path] of Object.entries(operations)) {
    const rates = servers.map((): number[] => []);
    const shares = servers.map((): number[] => []);
    // The first round warms up the servers and does not count.
    for (let round = 0; round <= rounds; round++) {
      for (const [place, { baseUrl }] of servers.entries()) {
        const before = process.cpuUsage();
        const done = await load(new URL(path, baseUrl), { token, connections, seconds: round === 0 ? 1 : seconds });
        if (round === 0) continue;
        rates[place]?.push(done.requests / done.seconds);
        shares[place]?.push(shareOf(before, done));
      }
    }
    const cells = rates.map((own, place) => `${median(own).toFixed(0)} (${median(shares[place] ?? []).toFixed(2)})`);
    process.stdout.write(`| ${operation} | ${cells.join(' | ')} |\n`);
  }
} finally {
  for (const { process: server } of servers) {
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
  await world.close();
}

async function startAnnals(workers: string): Promise<Server> {
  const launcher = join(import.meta.dirname, '../../bin/annals.js');
  const server = spawn(process.execPath, [launcher, 'serve'], {
    env: { PATH: process.env.PATH, ...world.environment, PORT: '0', ANNALS_WORKERS: workers },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [baseUrl] = await once(createInterface({ input: server.stdout }), 'line');
  return { name: `Annals, ${workers}`, baseUrl: String(baseUrl), process: server };
}

/** The part of a core that the load itself took. */
function shareOf(before: NodeJS.CpuUsage, done: Load): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6 / done.seconds;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, another) => one - another)[Math.floor(values.length / 2)] ?? Number.NaN;
}
