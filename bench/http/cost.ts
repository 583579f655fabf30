import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { load } from './load.ts';
import { processorTimeOf } from './processor-time.ts';
import { statementsOf, withRows } from './statements.ts';
import { historyPage, makeWorld, operations, startServer } from './world.ts';

// The processor time of a request beside that of bare handlers which give the same answer: one asks for its entries as
// rows, the other sends Annals' own statement. All servers run during the whole of it and are asked in turn; the medians of the
// rounds are compared.
const { values: settings } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    requests: { type: 'string', default: '3000' },
    /** Requests to each server before the first round, which do not count: the runtime compiles what it runs often. */
    warmup: { type: 'string', default: '30000' },
    connections: { type: 'string', default: '16' },
    data: { type: 'string', default: join(import.meta.dirname, '../../data/bench') },
    /** A checkout of another state, which is asked in turn as well. */
    before: { type: 'string' },
    /** Asks the service with metrics, and with traces to a collector of this process, in turn as well. */
    observed: { type: 'boolean', default: false },
    /** A folder for profiles of the service. */
    profile: { type: 'string' },
  },
});
const [rounds, requests, connections] = [
  Number(settings.rounds),
  Number(settings.requests),
  Number(settings.connections),
];

const world = await makeWorld(settings.data);
const servers: Awaited<ReturnType<typeof startServer>>[] = [];
try {
  const profile = settings.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${settings.profile}`];
  const annals = await startServer('annals.ts', world.environment, profile);
  servers.push(annals);
  const token = await world.tokenOf(annals.baseUrl);
  const statements = await statementsOf(Object.values(operations), world.environment, token);
  const startBare = async (sent: typeof statements) => {
    const server = await startServer('bare.ts', { ...world.environment, STATEMENTS: JSON.stringify(sent) });
    servers.push(server);
    return server;
  };
  const bare = await startBare(withRows(statements, historyPage));
  const bareWithOwn = await startBare(statements);

  // Each column has the ratio to another one.
  const columns = [
    { name: 'bare handler', server: bare, to: 'bare handler' },
    { name: "with Annals' statement", server: bareWithOwn, to: 'bare handler' },
    { name: 'Annals', server: annals, to: 'bare handler' },
  ];
  if (settings.before !== undefined) {
    const before = await startServer('annals.ts', world.environment, [], join(settings.before, 'bench/http'));
    servers.push(before);
    columns.push({ name: 'Annals before', server: before, to: 'bare handler' });
  }
  if (settings.observed) {
    const collector = await startCollector();
    const observers: Record<string, Record<string, string>> = {
      'with metrics': { ANNALS_METRICS_PORT: '0' },
      'with traces': { OTEL_EXPORTER_OTLP_ENDPOINT: collector },
      'with a tenth of the traces': {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector,
        OTEL_TRACES_SAMPLER: 'traceidratio',
        OTEL_TRACES_SAMPLER_ARG: '0.1',
      },
    };
    for (const [name, environment] of Object.entries(observers)) {
      const server = await startServer('annals.ts', { ...world.environment, ...environment });
      servers.push(server);
      columns.push({ name, server, to: 'Annals' });
    }
  }
  const heads = columns.map(({ name, to }) => `${name}, ms | / ${to}`);
  process.stdout.write(`| operation | ${heads.join(' | ')} |\n|---|${columns.map(() => '---:|---:|').join('')}\n`);
  for (const [operation, path] of Object.entries(operations)) {
    const times = columns.map((): number[] => []);
    for (const { server } of columns) {
      await load(new URL(path, server.baseUrl), { token, connections, requests: Number(settings.warmup) });
    }
    for (let round = 0; round < rounds; round++) {
      const inTurn = [...columns.entries()];
      for (const [column, { server }] of round % 2 === 0 ? inTurn : inTurn.toReversed()) {
        const before = await processorTimeOf(server.process);
        const done = await load(new URL(path, server.baseUrl), { token, connections, requests });
        times[column]?.push(((await processorTimeOf(server.process)) - before) / 1000 / done.requests);
      }
    }
    const cells = times.map((own, column) => {
      const others = times[columns.findIndex(({ name }) => name === columns[column]?.to)] ?? [];
      const ratios = own.map((time, round) => time / (others[round] ?? Number.NaN));
      return `${median(own).toFixed(3)} | ${median(ratios).toFixed(2)}`;
    });
    process.stdout.write(`| ${operation} | ${cells.join(' | ')} |\n`);
  }
} finally {
  for (const { process: server } of servers) {
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
  await world.close();
}

/** A collector that takes spans and does nothing with them. It ends with this process. */
async function startCollector(): Promise<string> {
  const collector = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{}'));
  });
  collector.listen(0, '127.0.0.1').unref();
  await once(collector, 'listening');
  const address = collector.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${address.port}`;
}

function median(values: readonly number[]): number {
  return values.toSorted((one, another) => one - another)[Math.floor(values.length / 2)] ?? Number.NaN;
}
