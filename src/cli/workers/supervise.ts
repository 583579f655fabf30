import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import type { FastifyBaseLogger } from 'fastify';
import { OperatorError } from '../../core/errors.ts';
import { createLogger, logStream } from '../../http/logger.ts';
import type { Figures } from '../../metrics/metrics.ts';
import type { CommandIo } from '../command.ts';
import { ReportedError } from '../error-report.ts';
import type { MigratedDatabase } from '../with-database.ts';
import { type Addresses, type Ports, type PrimaryMessage, type WorkerMessage, workerVariable } from './messages.ts';
import { closeUntakenConnections } from './untaken-connections.ts';
import { type LineSink, passOnLines } from './whole-lines.ts';
import { runtimeOptions } from './worker-count.ts';
import { WorkerFigures } from './worker-figures.ts';

/** A worker that lived longer is restarted at once (milliseconds). */
const calmAfter = 60_000;
const minPause = 1_000;
const maxPause = 30_000;

/** Milliseconds until a dead worker is restarted: 0; if it dies again within a minute, 1 s, doubled up to 30 s. */
export function restartPause(before: number | undefined, lived: number): number {
  if (before === undefined || lived >= calmAfter) return 0;
  return Math.min(maxPause, Math.max(minPause, before * 2));
}

/** Milliseconds after which stopping workers are killed: longer than open requests have to finish. */
const stopLimit = 40_000;

/** Milliseconds that stopping workers have to close their ports. */
const closeLimit = 1_000;

/**
 * Runs `count` workers on one port until a signal, and restarts those that die. Rejects with a ReportedError if a
 * worker fails at its first start, or if the schema of the database changes.
 */
export async function superviseWorkers(io: CommandIo, database: MigratedDatabase, count: number): Promise<void> {
  if (!cluster.isPrimary) {
    throw new OperatorError('ANNALS_WORKERS must be 1 where another program runs the service in its own workers');
  }
  cluster.setupPrimary({
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: runtimeOptions(count, process.execArgv, process.env.NODE_OPTIONS),
  });
  await new Supervisor(io, database, count).run();
}

/** The place of a worker; its replacements have the same number. */
interface Place {
  readonly number: number;
  worker: Worker | undefined;
  /** Closes a connection that was sent to the worker and not accepted. */
  closeUntaken: () => void;
  /** In milliseconds of performance.now(). */
  startedAt: number;
  isReady: boolean;
  /** The worker's own report of its failure. */
  failure: ReportedError | undefined;
  /** Milliseconds that its last restart waited; undefined before the first restart. */
  pause: number | undefined;
  restart: NodeJS.Timeout | undefined;
}

class Supervisor {
  readonly #io: CommandIo;
  readonly #database: MigratedDatabase;
  readonly #stream: LineSink;
  readonly #logger: FastifyBaseLogger;
  readonly #places: Place[];
  readonly #figures = new WorkerFigures();
  readonly #ended = Promise.withResolvers<void>();
  /** The worker that does the upkeep. */
  #leader: Place | undefined;
  /** Where the workers listen; undefined until all are ready for the first time. */
  #addresses: Addresses | undefined;
  /** Set once no worker listened: with port 0 the next one would otherwise choose another port. */
  #ports: Ports | undefined;
  #isStopping = false;
  #failure: ReportedError | undefined;

  constructor(io: CommandIo, database: MigratedDatabase, count: number) {
    this.#io = io;
    this.#database = database;
    const stream = logStream();
    this.#stream = stream;
    this.#logger = createLogger(database.config.logLevel, stream);
    this.#places = Array.from({ length: count }, (_, index) => ({
      number: index + 1,
      worker: undefined,
      closeUntaken: () => {},
      startedAt: 0,
      isReady: false,
      failure: undefined,
      pause: undefined,
      restart: undefined,
    }));
  }

  async run(): Promise<void> {
    const onStop = () => this.#stop(this.#io.stop.reason);
    this.#io.stop.addEventListener('abort', onStop);
    const { closeMetrics } = await this.#openMetrics();
    for (const place of this.#places) this.#start(place);
    try {
      await this.#ended.promise;
    } finally {
      await closeMetrics();
      this.#io.stop.removeEventListener('abort', onStop);
    }
  }

  /** One port serves the sum over all workers and this process, which measures the database. */
  async #openMetrics(): Promise<{ closeMetrics(): Promise<void> }> {
    const { config, url } = this.#database;
    if (config.metrics === undefined) return { closeMetrics: async () => {} };
    const { openInstallationMetrics } = await import('../metrics.ts');
    return await openInstallationMetrics(config, {
      logger: this.#logger,
      tell: this.#io.tell,
      databaseUrl: url,
      readOthers: () => this.#measureAll(),
    });
  }

  async #measureAll(): Promise<Figures[]> {
    const ready = this.#places.flatMap(({ worker, isReady }) => (isReady && worker?.isConnected() ? [worker] : []));
    const workers = new Map(ready.map((worker) => [worker.id, worker]));
    return await this.#figures.read([...workers.keys()], (id, message) => {
      const worker = workers.get(id);
      if (worker !== undefined) this.#tell(worker, { type: 'measure', id: message });
    });
  }

  #start(place: Place): void {
    const worker = cluster.fork({ [workerVariable]: String(place.number) });
    Object.assign(place, { worker, startedAt: performance.now(), isReady: false, failure: undefined });
    const { process: child } = worker;
    place.closeUntaken = closeUntakenConnections(child);
    const lines = [child.stdout, child.stderr].map((source) => source && passOnLines(source, this.#stream));
    worker.on('message', (message: WorkerMessage) => this.#hear(place, worker, message));
    worker.on('error', (error) =>
      this.#logger.warn({ worker: place.number, err: error }, 'a worker cannot be reached'),
    );
    void once(child, 'exit').then(async ([code, signal]: unknown[]) => {
      await Promise.all(lines);
      this.#bury(place, typeof signal === 'string' ? signal : `exit code ${code}`);
    });
  }

  #hear(place: Place, worker: Worker, message: WorkerMessage): void {
    if (message.type === 'started') {
      this.#tell(worker, {
        type: 'begin',
        number: place.number,
        of: this.#places.length,
        databaseUrl: this.#database.url,
        secretKeys: this.#database.secretKeys.map((key) => Buffer.from(key).toString('base64')),
        ports: this.#portsForNext(),
      });
    } else if (message.type === 'measured') {
      this.#figures.take(message.id, message.figures);
    } else if (message.type === 'failed') {
      place.failure = new ReportedError(message.report);
    } else {
      this.#welcome(place, worker, message.addresses);
    }
  }

  #welcome(place: Place, worker: Worker, addresses: Addresses): void {
    if (this.#addresses !== undefined && this.#addresses.main !== addresses.main) {
      // It chose a free port just when the last worker on ours died. Its replacement gets the port.
      worker.process.kill('SIGTERM');
      return;
    }
    place.isReady = true;
    this.#logger.info({ worker: place.number, process: worker.process.pid }, 'a worker is ready');
    this.#chooseLeader();
    if (this.#addresses === undefined && this.#places.every(({ isReady }) => isReady)) {
      this.#addresses = addresses;
      if (addresses.recorder !== undefined) this.#io.tell(`The recorder listens on ${addresses.recorder}`);
      this.#io.answer(addresses.main);
    }
  }

  /** After the end of a worker; `how` is the signal or the exit code. */
  #bury(place: Place, how: string): void {
    const { worker, failure, isReady } = place;
    const process = worker?.process.pid;
    if (worker !== undefined) this.#figures.end(worker.id);
    Object.assign(place, { worker: undefined, isReady: false });
    if (this.#leader === place) this.#leader = undefined;
    if (this.#isStopping) {
      this.#endIfAllGone();
    } else if (failure !== undefined && (isReady || this.#addresses === undefined)) {
      this.#fail(failure);
    } else if (this.#addresses === undefined) {
      this.#fail(
        new ReportedError({ lines: [`annals: worker ${place.number} ended by ${how} as it started`], code: 1 }),
      );
    } else {
      this.#chooseLeader();
      const pause = restartPause(place.pause, performance.now() - place.startedAt);
      this.#logger.warn(
        { worker: place.number, process, cause: failure?.message, seconds: pause / 1000 },
        `a worker ended by ${how}; a new one takes its place`,
      );
      place.pause = pause;
      place.restart = setTimeout(() => this.#start(place), pause);
    }
  }

  #chooseLeader(): void {
    if (this.#leader !== undefined) return;
    this.#leader = this.#places.find(({ isReady }) => isReady);
    if (this.#leader?.worker === undefined) return;
    this.#logger.info({ worker: this.#leader.number }, 'this worker does the upkeep from now on');
    this.#tell(this.#leader.worker, { type: 'lead' });
  }

  #portsForNext(): Ports | undefined {
    if (this.#addresses !== undefined && !this.#places.some(({ isReady }) => isReady)) {
      const { main, recorder } = this.#addresses;
      this.#ports ??= { main: portOf(main), recorder: recorder === undefined ? undefined : portOf(recorder) };
    }
    return this.#ports;
  }

  #fail(failure: ReportedError): void {
    this.#failure = failure;
    this.#stop('SIGTERM');
  }

  #stop(signal: NodeJS.Signals): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    for (const { worker, restart } of this.#places) {
      clearTimeout(restart);
      if (worker !== undefined) this.#tell(worker, { type: 'stop', signal });
    }
    setTimeout(() => this.#closeUntaken(), closeLimit).unref();
    setTimeout(() => this.#killAll(), stopLimit).unref();
    this.#endIfAllGone();
  }

  #closeUntaken(): void {
    for (const { closeUntaken } of this.#places) closeUntaken();
  }

  #killAll(): void {
    for (const { worker } of this.#places) worker?.process.kill('SIGKILL');
  }

  #endIfAllGone(): void {
    if (this.#places.some(({ worker }) => worker !== undefined)) return;
    if (this.#failure === undefined) this.#ended.resolve();
    else this.#ended.reject(this.#failure);
  }

  #tell(worker: Worker, message: PrimaryMessage): void {
    // If it has died, its exit says so.
    if (worker.isConnected()) worker.process.send(message, () => {});
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
