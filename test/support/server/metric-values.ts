import { measureInstallation } from '../../../src/context/installation-figures.ts';
import { Metrics, textOf } from '../../../src/metrics/metrics.ts';
import type { TestServer } from './server.ts';

/** The value of each line of the text in Prometheus' format, by its name and labels. */
export function valuesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

/** The metrics of a test server with ANNALS_METRICS_PORT. */
export function metricsOf({ context }: TestServer): Metrics {
  if (context.metrics === undefined) throw new Error('the server measures nothing');
  return context.metrics;
}

export async function readMetrics(metrics: Metrics): Promise<Map<string, number>> {
  return valuesOf(await textOf([await metrics.read()]));
}

/** What the database knows now: a process asks it only every 10 s. */
export async function readInstallation({ database }: TestServer, dataDir?: string): Promise<Map<string, number>> {
  const metrics = new Metrics();
  const end = measureInstallation(metrics, database.url, dataDir);
  const values = await readMetrics(metrics);
  await end();
  return values;
}
