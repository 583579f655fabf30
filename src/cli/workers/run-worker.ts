import cluster from 'node:cluster';
import { once } from 'node:events';
import { type Config, readConfig } from '../../core/config/config.ts';
import { OperatorError } from '../../core/errors.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { CommandIo } from '../command.ts';
import { reportOf } from '../error-report.ts';
import type { Serve } from '../serve.ts';
import { withContextOn } from '../with-context.ts';
import { withWatch } from '../with-database.ts';
import { type PrimaryMessage, type WorkerMessage, type WorkerTask, workerVariable } from './messages.ts';

/**
 * Serves as one of several processes on one port, until the primary process or a signal stops it. Returns the exit
 * code. Node ends the worker when the primary process dies.
 */
export async function runWorker(io: CommandIo, serve: Serve): Promise<number> {
  const { worker } = cluster;
  if (worker === undefined) throw new OperatorError(`${workerVariable} is not a setting: leave it out`);
  const begun = Promise.withResolvers<WorkerTask>();
  const turn = Promise.withResolvers<void>();
  const stop = new AbortController();
  process.on('message', (message: PrimaryMessage) => {
    if (message.type === 'begin') begun.resolve(message);
    else if (message.type === 'lead') turn.resolve();
    else if (message.type === 'measure') void tellFigures(message.id);
    else stop.abort(message.signal);
  });
  let metrics: Metrics | undefined;
  const tellFigures = async (id: number) => {
    if (metrics !== undefined) await send({ type: 'measured', id, figures: await metrics.read() });
  };
  await send({ type: 'started' });
  try {
    const { number, of, databaseUrl, secretKeys, ports } = await begun.promise;
    const stopped = AbortSignal.any([io.stop, stop.signal]);
    const database = {
      config: withPorts(readConfig(io.environment), ports),
      url: databaseUrl,
      secretKeys: secretKeys.map((key) => Buffer.from(key, 'base64')),
    };
    const options = {
      io: { ...io, stop: stopped, tell: (line: string) => io.tell(`worker ${number}: ${line}`) },
      upkeepTurn: turn.promise,
      ready: (main: string, recorder: string | undefined) => send({ type: 'ready', addresses: { main, recorder } }),
    };
    const work = (current: Parameters<Parameters<typeof withWatch>[1]>[0]) =>
      withContextOn(
        current,
        async (context, config, watch) => {
          metrics = context.metrics;
          await serve(context, config, { ...options, watch });
        },
        { worker: { number, of } },
      );
    if (!stopped.aborted) await withWatch(database, work);
    return 0;
  } catch (error) {
    // The primary process prints it, once for all workers.
    const report = reportOf(error, undefined);
    await send({ type: 'failed', report });
    return report.code;
  } finally {
    await leave(worker);
  }
}

/** A restarted worker must listen where the others do, even if the settings allow any port. */
function withPorts(config: Config, ports: WorkerTask['ports']): Config {
  if (ports === undefined) return config;
  const { recorder } = config;
  // Without a service the recorder's address is the main one.
  const listener = recorder && { ...recorder, port: ports.recorder ?? ports.main };
  return { ...config, port: ports.main, recorder: listener };
}

function send(message: WorkerMessage): Promise<void> {
  return new Promise((resolve) => {
    // The primary process may be gone; then the message is lost.
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, undefined, () => resolve());
  });
}

/** Closes the channel, which would keep the process alive. */
async function leave(worker: NonNullable<typeof cluster.worker>): Promise<void> {
  if (!worker.isConnected()) return;
  const disconnected = once(worker, 'disconnect');
  worker.disconnect();
  await disconnected;
}
