import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildApp, buildRecorderApp, type RecorderAppOptions } from '../app.ts';
import type { Context } from '../context/context.ts';
import type { Listener } from '../core/config/addresses.ts';
import type { Config } from '../core/config/config.ts';
import { OperatorError } from '../core/errors.ts';
import type { HttpServer } from '../http/http-server-type.ts';
import type { SchemaWatch } from '../postgres/schema/watch-schema.ts';
import type { CommandIo } from './command.ts';
import { listen } from './listen.ts';
import { mappingTextOfFile } from './mapping-file.ts';
import { listenForMetrics } from './metrics.ts';

/** Milliseconds that open requests have to finish after a signal. */
const graceLimit = 30_000;
/** The same if another version waits for the process, after the time that load balancers need to notice. */
const outdatedGraceLimit = 10_000;
const outdatedNotice = 2_000;

export interface ServeOptions {
  io: CommandIo;
  watch: SchemaWatch;
  /** Where the recorder listens beside the service; default: as set. */
  recorder?: Listener | undefined;
  /** Resolves when this worker is to do the upkeep; default: from the start. */
  upkeepTurn?: Promise<void> | undefined;
  /** Called with the base URLs of the service and the recorder; default: prints them. */
  ready?: (baseUrl: string, recorderUrl: string | undefined) => Promise<void> | void;
}

export type Serve = (context: Context, config: Config, options: ServeOptions) => Promise<void>;

/**
 * Serves until a signal. Throws an OperatorError if another version changes the database's schema: the process then
 * reports that it is not ready, and finishes its open requests.
 */
export async function serveUntilStopped(
  context: Context,
  config: Config,
  { io, watch, recorder = config.recorder, upkeepTurn, ready = readyOf(io) }: ServeOptions,
): Promise<void> {
  const notReady = () => watch.reason;
  // The recorder first: if its mapping has faults, nothing listens.
  const recorderApp = recorder && (await recorderAppOf(context, config, { notReady }));
  const app = await buildApp(context, { notReady, upkeepTurn });
  const apps = [app, ...(recorderApp === undefined ? [] : [recorderApp])];
  try {
    const baseUrl = await listen(app, config, 'PORT');
    const recorderUrl = recorderApp && (await listen(recorderApp, recorder, 'ANNALS_RECORDER_PORT'));
    // For workers, the primary process serves the metrics.
    if (upkeepTurn === undefined) apps.push(...(await metricsAppsOf(context, config, io)));
    await ready(baseUrl, recorderUrl);
    warmUp(context, { reads: true });
    await untilStopped(context, { io, watch });
  } finally {
    await closeAll(apps, { io, watch });
  }
}

/** Runs a recorder without the service, as `serveUntilStopped` does. */
export async function recordUntilStopped(
  context: Context,
  config: Config,
  { io, watch, upkeepTurn, ready = readyOf(io) }: ServeOptions,
): Promise<void> {
  const app = await recorderAppOf(context, config, { notReady: () => watch.reason, upkeepTurn, isAlone: true });
  const apps = [app];
  try {
    const variable = config.recorder ? 'ANNALS_RECORDER_PORT' : 'PORT';
    const url = await listen(app, config.recorder ?? config, variable, 'recorder');
    // For workers, the primary process serves the metrics.
    if (upkeepTurn === undefined) apps.push(...(await metricsAppsOf(context, config, io)));
    await ready(url, undefined);
    warmUp(context, { reads: false });
    await untilStopped(context, { io, watch });
  } finally {
    await closeAll(apps, { io, watch });
  }
}

async function metricsAppsOf({ logger, metrics }: Context, config: Config, { tell }: CommandIo): Promise<HttpServer[]> {
  if (metrics === undefined) return [];
  const app = await listenForMetrics(config, { logger, readFigures: async () => [await metrics.read()], tell });
  return app === undefined ? [] : [app];
}

async function recorderAppOf(
  context: Context,
  { recorderMapping }: Config,
  options: Omit<RecorderAppOptions, 'mapping'>,
): Promise<HttpServer> {
  const mapping = recorderMapping === undefined ? undefined : await mappingTextOfFile(recorderMapping);
  return await buildRecorderApp(context, { ...options, mapping });
}

function readyOf({ answer, tell }: CommandIo): NonNullable<ServeOptions['ready']> {
  return (baseUrl, recorderUrl) => {
    if (recorderUrl !== undefined) tell(`The recorder listens on ${recorderUrl}`);
    answer(baseUrl);
  };
}

/** In the background: Annals answers calls during the warm-up. */
function warmUp(context: Context, options: { reads: boolean }): void {
  context
    .warmUp(options)
    .catch((error) => context.logger.debug({ err: error }, 'the warm-up failed; first calls take longer'));
}

async function untilStopped(context: Context, { io, watch }: Pick<ServeOptions, 'io' | 'watch'>): Promise<void> {
  const stop = AbortSignal.any([io.stop, watch.signal]);
  if (!stop.aborted) await once(stop, 'abort');
  if (watch.reason === undefined) {
    context.logger.info(
      `asked to stop: no more connections are accepted, and requests in flight have ${graceLimit / 1_000} s`,
    );
    return;
  }
  context.logger.error(watch.reason);
  // Answers are correct until the schema has changed.
  if (!watch.late) await sleep(outdatedNotice, undefined, { signal: io.stop }).catch(() => {});
  throw new OperatorError(watch.reason);
}

async function closeAll(apps: readonly HttpServer[], { io, watch }: Pick<ServeOptions, 'io' | 'watch'>): Promise<void> {
  const grace = watch.reason === undefined ? graceLimit : outdatedGraceLimit;
  const closed = Promise.all(apps.map((app) => app.close()));
  if ((await Promise.race([closed, sleep(grace, 'late', { ref: false })])) === 'late') {
    io.tell(`after ${grace / 1000} s requests are still in flight; they are cut`);
    for (const app of apps) app.server.closeAllConnections();
    await closed;
  }
}
