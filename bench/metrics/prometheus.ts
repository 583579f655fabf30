import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../src/postgres/embedded/free-port.ts';

const rules = join(import.meta.dirname, '../../deploy/prometheus/alerts.yaml');

interface Series {
  metric: Record<string, string>;
  values: [number, string][];
}

/** A time in which an alert was pending, or fired. */
export interface Alert {
  /** With the labels that tell its series apart. */
  readonly name: string;
  readonly severity: string;
  readonly state: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly until: number;
}

export interface Phase {
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

export interface Watch {
  /** The parts of the run, in order. The first one, `before`, begins with the watch. */
  readonly phases: readonly Phase[];
  /** Begins another part of the run, for example `disk full`. The rates of its first minute have something of the part before. */
  begin(phase: string): void;
  /** The values of an expression each 5 s, from the begin of the watch until now; one series for each set of labels. */
  range(expression: string): Promise<Series[]>;
  /** When each alert was pending and when it fired, in order. */
  alerts(): Promise<Alert[]>;
  close(): Promise<void>;
}

/**
 * A Prometheus that scrapes the addresses every 5 s and evaluates the alerts of deploy/prometheus as they stand. Undefined where no
 * `prometheus` is on the PATH.
 *
 * @example const watch = await watchMetrics('/tmp/soak', { service: '127.0.0.1:9464' });
 */
export async function watchMetrics(
  folder: string,
  targets: Readonly<Record<string, string>>,
): Promise<Watch | undefined> {
  const data = join(folder, 'prometheus');
  await rm(data, { recursive: true, force: true });
  await mkdir(data, { recursive: true });
  const address = `127.0.0.1:${await freePort()}`;
  const configuration = {
    global: { scrape_interval: '5s', scrape_timeout: '4s', evaluation_interval: '5s' },
    rule_files: [rules],
    scrape_configs: [
      {
        job_name: 'annals',
        static_configs: Object.entries(targets).map(([role, target]) => ({ targets: [target], labels: { role } })),
      },
    ],
  };
  // JSON is YAML.
  await writeFile(join(data, 'prometheus.yml'), JSON.stringify(configuration));
  const server = spawn(
    'prometheus',
    [
      `--config.file=${join(data, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(data, 'series')}`,
      `--web.listen-address=${address}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  if (!(await isReady(server, `http://${address}/-/ready`))) return undefined;
  const began = Date.now();
  const phases: Phase[] = [{ name: 'before', since: began }];

  async function range(expression: string): Promise<Series[]> {
    const body = new URLSearchParams({
      query: expression,
      start: String(began / 1000),
      end: String(Date.now() / 1000),
      step: '5',
    });
    const response = await fetch(`http://${address}/api/v1/query_range`, { method: 'POST', body });
    const answer = (await response.json()) as { status: string; error?: string; data?: { result: Series[] } };
    if (answer.data === undefined) throw new Error(`Prometheus does not evaluate ${expression}: ${answer.error}`);
    return answer.data.result;
  }

  return {
    range,
    phases,
    begin: (name) => void phases.push({ name, since: Date.now() }),

    async alerts() {
      const found: Alert[] = [];
      for (const { metric, values } of await range('ALERTS')) {
        const { alertname, alertstate: state = '', severity = '', __name__, ...labels } = metric;
        const of = Object.entries(labels).filter(([label]) => ['role', 'way', 'provider'].includes(label));
        const name = [alertname, ...of.map(([label, value]) => `${label}=${value}`)].join(' ');
        for (const times of rangesOf(values.map(([second]) => second * 1000))) {
          found.push({ name, severity, state, ...times });
        }
      }
      return found.sort((one, other) => one.since - other.since);
    },

    async close() {
      const exit = once(server, 'exit');
      server.kill('SIGTERM');
      await exit;
    },
  };
}

/** Waits where there is a watch, so that a phase without load has some scrapes. */
export async function watchQuietly(watch: Watch | undefined, seconds: number): Promise<void> {
  if (watch !== undefined) await sleep(seconds * 1000);
}

/** Moments that follow each other without a gap, as one. */
function rangesOf(moments: readonly number[]): { since: number; until: number }[] {
  const found: { since: number; until: number }[] = [];
  for (const moment of moments) {
    const last = found.at(-1);
    if (last !== undefined && moment - last.until < 8_000) last.until = moment;
    else found.push({ since: moment, until: moment });
  }
  return found;
}

async function isReady(server: ChildProcess, url: string): Promise<boolean> {
  let hasFailed = false;
  server.on('error', () => {
    hasFailed = true;
  });
  while (!hasFailed && server.exitCode === null) {
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok) return true;
    await sleep(100);
  }
  return false;
}
