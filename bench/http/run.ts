import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { foldHistory } from '../../src/history/upkeep/fold.ts';
import { median, printTable } from '../figures.ts';
import { changesOf, recordAll } from '../isolation/attacks/attack.ts';
import { processTime } from '../processor-time.ts';
import { makeTenant, openBenchServer } from '../server.ts';
import { environmentOf, firstLineOf, startService, stop, tokenOf } from '../service.ts';
import { type Answered, statementsOf, withRows } from './statements.ts';

// The processor time of a request beside that of a bare handler with the same answer. All servers run throughout and
// are called in turn; the medians of the rounds are compared.
const { values: settings } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    requests: { type: 'string', default: '3000' },
    /** Requests to each server before the first round, which do not count: the runtime compiles what runs often. */
    warmup: { type: 'string', default: '30000' },
    connections: { type: 'string', default: '16' },
    /** The service with metrics and with traces as well. */
    observed: { type: 'boolean', default: false },
  },
});
const tenant = 'bench';
const historyPage = `/changelog/${tenant}/changelogs`;
const box = `/schema/${tenant}/custom-entities/BOX`;
/** Each costs one statement of the database, or none. */
const operations: Record<string, string> = {
  'history page': historyPage,
  'one instance': `${box}/instances/a`,
  'list of models': `/ai-service/${tenant}/agentic/models`,
};

const server = await openBenchServer();
const { url, pool, db, drop } = await server.create();
const children: ChildProcess[] = [];
try {
  const client = await makeTenant(db, tenant);
  await recordAll(db, tenant, changesOf(3_000));
  await foldHistory(db, tenant);
  await pool.query('vacuum analyze');
  const environment = environmentOf(url, { LOG_LEVEL: 'info' });
  const annals = await startAnnals(environment);
  const token = await tokenOf(annals.baseUrl, client);
  await put(annals.baseUrl, box, { name: { en: 'Box' } }, token);
  await put(annals.baseUrl, `${box}/instances/a`, { name: 'A box', price: 12.5 }, token);
  const statements = await statementsOf(Object.values(operations), environment, token);

  const columns = [
    { name: 'bare handler', server: await startBare(withRows(statements, historyPage)), to: 'bare handler' },
    { name: 'Annals', server: annals, to: 'bare handler' },
  ];
  const collector = await startCollector();
  const traced = { OTEL_EXPORTER_OTLP_ENDPOINT: collector };
  const observers = {
    'with metrics': { ANNALS_METRICS_PORT: '0' },
    'with traces': traced,
    'with a tenth of the traces': { ...traced, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' },
  };
  for (const [name, more] of settings.observed ? Object.entries(observers) : []) {
    columns.push({ name, server: await startAnnals({ ...environment, ...more }), to: 'Annals' });
  }
  const rows: string[][] = [];
  for (const [operation, path] of Object.entries(operations)) {
    rows.push([operation, ...(await measure(columns, path, token))]);
  }
  printTable(['operation', ...columns.flatMap(({ name, to }) => [`${name}, ms`, `/ ${to}`])], rows);
} finally {
  for (const child of children) await stop(child);
  await drop();
  await server.release();
}

interface Measured {
  pid: number;
  baseUrl: string;
}

/** For each column its milliseconds a request, and the ratio to the column that it names. */
async function measure(
  columns: readonly { name: string; server: Measured; to: string }[],
  path: string,
  token: string,
): Promise<string[]> {
  const headers = { authorization: `Bearer ${token}` };
  const load = async (baseUrl: string, requests: number) => {
    let left = requests;
    const connections = Array.from({ length: Number(settings.connections) }, async () => {
      for (; left > 0; left -= 1) {
        const response = await fetch(baseUrl + path, { headers });
        await response.arrayBuffer();
        if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
      }
    });
    await Promise.all(connections);
  };
  const times = columns.map((): number[] => []);
  for (const { server: measured } of columns) await load(measured.baseUrl, Number(settings.warmup));
  for (let round = 0; round < Number(settings.rounds); round++) {
    const inTurn = [...columns.entries()];
    for (const [column, { server: measured }] of round % 2 === 0 ? inTurn : inTurn.toReversed()) {
      const before = processTime(measured.pid);
      await load(measured.baseUrl, Number(settings.requests));
      times[column]?.push((processTime(measured.pid) - before) / Number(settings.requests));
    }
  }
  return times.flatMap((own, column) => {
    const base = times[columns.findIndex(({ name }) => name === columns[column]?.to)] ?? [];
    const ratios = own.map((time, round) => time / (base[round] ?? Number.NaN));
    return [median(own).toFixed(3), median(ratios).toFixed(2)];
  });
}

async function startAnnals(environment: Record<string, string>): Promise<Measured> {
  const service = await startService(environment);
  children.push(service.process);
  service.process.stdout?.resume();
  return service;
}

async function startBare(statements: Record<string, Answered>): Promise<Measured> {
  const child = fork(join(import.meta.dirname, 'bare.ts'), {
    env: { DATABASE_URL: url, STATEMENTS: JSON.stringify(statements) },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  children.push(child);
  return { pid: child.pid ?? 0, baseUrl: await firstLineOf(child) };
}

async function put(baseUrl: string, path: string, body: object, token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  await fetch(`${baseUrl}${path}`, { method: 'PUT', headers, body: JSON.stringify(body) });
}

/** A collector that takes spans and drops them. It ends with this process. */
async function startCollector(): Promise<string> {
  const collector = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{}'));
  });
  collector.listen(0, '127.0.0.1').unref();
  await once(collector, 'listening');
  return `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
}
