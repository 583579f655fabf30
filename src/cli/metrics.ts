import type { FastifyBaseLogger } from 'fastify';
import { buildMetricsApp } from '../app.ts';
import { measureInstallation } from '../context/installation-figures.ts';
import { type Config, embeddedFolder } from '../core/config/config.ts';
import { productVersion } from '../core/package-folder.ts';
import type { Tracer } from '../core/trace.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import { type Figures, Metrics } from '../metrics/metrics.ts';
import { openTracer } from '../metrics/open-tracer.ts';
import { measureProcess } from '../metrics/process.ts';
import type { CommandIo } from './command.ts';
import { listen } from './listen.ts';

/** Serves the figures on ANNALS_METRICS_PORT; undefined without that setting. The caller closes the server. */
export async function listenForMetrics(
  { metrics: listener }: Pick<Config, 'metrics'>,
  {
    logger,
    readFigures,
    tell,
  }: { logger: FastifyBaseLogger; readFigures: () => Promise<readonly Figures[]> } & Pick<CommandIo, 'tell'>,
): Promise<HttpServer | undefined> {
  if (listener === undefined) return undefined;
  const app = buildMetricsApp({ logger, readFigures });
  try {
    const url = await listen(app, listener, 'ANNALS_METRICS_PORT');
    tell(`The metrics are at ${url}/metrics`);
    return app;
  } catch (error) {
    await app.close();
    throw error;
  }
}

export interface Observers {
  readonly metrics: Metrics | undefined;
  readonly tracer: Tracer | undefined;
  /** Registers a function to call after the work. */
  readonly atEnd: (end: () => Promise<void>) => void;
}

/**
 * Runs the work of a command without the service: with a tracer if the settings name a collector, and with the
 * process's metrics on ANNALS_METRICS_PORT if it is set.
 */
export async function withObservers(
  config: Pick<Config, 'metrics' | 'traces'>,
  { logger, tell }: { logger: FastifyBaseLogger } & Pick<CommandIo, 'tell'>,
  work: (observers: Observers) => Promise<void>,
): Promise<void> {
  const ends: (() => Promise<void>)[] = [];
  const atEnd = (end: () => Promise<void>) => void ends.push(end);
  const metrics = config.metrics && new Metrics();
  if (metrics !== undefined) measureProcess(metrics, productVersion());
  const readFigures = async () => (metrics === undefined ? [] : [await metrics.read()]);
  const app = await listenForMetrics(config, { logger, readFigures, tell });
  try {
    const tracer = await openTracer(config.traces, logger);
    if (tracer !== undefined) atEnd(() => tracer.close());
    await work({ metrics, tracer, atEnd });
  } finally {
    await app?.close();
    for (const end of ends) await end();
  }
}

/** Serves the figures of this process, of the database and of other processes on ANNALS_METRICS_PORT. */
export async function openInstallationMetrics(
  config: Pick<Config, 'metrics' | 'databaseUrl' | 'dataDir'>,
  {
    logger,
    tell,
    databaseUrl,
    readOthers,
  }: { logger: FastifyBaseLogger; databaseUrl: string; readOthers: () => Promise<Figures[]> } & Pick<CommandIo, 'tell'>,
): Promise<{ closeMetrics(): Promise<void> }> {
  const metrics = new Metrics();
  measureProcess(metrics, productVersion());
  const endMeasuring = measureInstallation(metrics, databaseUrl, embeddedFolder(config));
  const readFigures = async () => [await metrics.read(), ...(await readOthers())];
  try {
    const app = await listenForMetrics(config, { logger, readFigures, tell });
    return {
      async closeMetrics() {
        await app?.close();
        await endMeasuring();
      },
    };
  } catch (error) {
    await endMeasuring();
    throw error;
  }
}
