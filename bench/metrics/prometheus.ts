import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../src/db/embedded/free-port.ts';

const rules = join(import.meta.dirname, '../../deploy/prometheus/alerts.yaml');

interface Series {
  metric: Record<string, string>;
  values: [number, string][];
}

export interface Watch {
  /** The values of an expression each 5 s, from the begin of the watch until now; one series for each set of labels. */
  range(expression: string): Promise<Series[]>;
  /** When each alert was pending and when it fired, one line each. */
  alerts(): Promise<string[]>;
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

    async alerts() {
      const lines: { since: number; line: string }[] = [];
      for (const { metric, values } of await range('ALERTS')) {
        const { alertname, alertstate, severity, __name__, ...labels } = metric;
        const of = Object.entries(labels).filter(([label]) => ['role', 'way', 'provider'].includes(label));
        const name = [alertname, ...of.map(([label, value]) => `${label}=${value}`)].join(' ');
        for (const { since, until } of stretches(values.map(([second]) => second * 1000))) {
          const line = `${name} (${severity}) was ${alertstate} from ${clock(since)} to ${clock(until)}`;
          lines.push({ since, line });
        }
      }
      return lines.sort((one, other) => one.since - other.since).map(({ line }) => line);
    },

    async close() {
      const exit = once(server, 'exit');
      server.kill('SIGTERM');
      await exit;
    },
  };
}

/** Moments that follow each other without a gap, as one. */
function stretches(moments: readonly number[]): { since: number; until: number }[] {
  const found: { since: number; until: number }[] = [];
  for (const moment of moments) {
    const last = found.at(-1);
    if (last !== undefined && moment - last.until < 8_000) last.until = moment;
    else found.push({ since: moment, until: moment });
  }
  return found;
}

const clock = (milliseconds: number) => new Date(milliseconds).toISOString().slice(11, 19);

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
