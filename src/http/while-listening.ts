import { unlessAborted } from '../core/fairness/deadline.ts';
import { repeat, rest } from '../core/repeat.ts';
import type { HttpServer } from './http-server-type.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Resolves when this worker is to do the upkeep; undefined: from the start. */
    upkeepTurn: Promise<void> | undefined;
  }
}

/** Background work that is repeated. */
export interface Upkeep {
  /** For the log: `the upkeep of agents`. */
  readonly what: string;
  /** Milliseconds between the end of a run and the next one. */
  readonly every: number;
  /** Errors are logged and retried. The signal is aborted when the server closes. */
  work(signal: AbortSignal, onError: (error: unknown) => void): Promise<unknown>;
}

interface WhileListening {
  readonly upkeep: readonly Upkeep[];
  /** Before the repeated work begins. */
  begin?(): Promise<void>;
  /** After the last run, when the server closes. */
  end?(): Promise<void> | void;
}

/** Milliseconds after which the next work begins even if the first run of the one before has not ended. */
const maxTurn = 1_000;

/** By server: resolves when the last work that began yields its turn. */
const turns = new WeakMap<object, Promise<void>>();

/**
 * Repeats work while the server listens; of several workers, from this one's turn. All work of a server begins one
 * after another, since each opens a connection, which a database that has just started does slowly.
 *
 * @example
 * whileListening(app, { upkeep: [{ what: 'the upkeep of agents', every: 5_000, work: () => chats.upkeep() }] });
 */
export function whileListening(app: HttpServer, { upkeep, begin, end }: WhileListening): void {
  const stop = new AbortController();
  const { signal } = stop;
  let working: Promise<unknown> = Promise.resolve();

  async function repeatWork(): Promise<void> {
    const runs = upkeep.map(async ({ what, every, work }) => {
      const onError = (error: unknown) => app.log.warn({ err: error }, `${what} failed; retrying`);
      const { promise: firstTime, resolve: endFirstTime } = Promise.withResolvers<void>();
      const run = async () => void (await work(signal, onError).finally(endFirstTime));
      await waitForTurn(() => Promise.race([firstTime, rest(maxTurn, signal)]));
      await repeat({ every, signal, run, onError });
    });
    await Promise.all(runs);
  }

  async function waitForTurn(turn: () => Promise<void>): Promise<void> {
    const before = turns.get(app.server) ?? Promise.resolve();
    turns.set(app.server, before.then(turn));
    await unlessAborted(before, signal).catch(() => {});
  }

  async function workInTurn(turn: Promise<void>): Promise<void> {
    await unlessAborted(turn, signal);
    await begin?.();
    await repeatWork();
  }

  app.addHook('onListen', async () => {
    if (app.upkeepTurn === undefined) {
      await begin?.();
      working = repeatWork();
    } else {
      working = workInTurn(app.upkeepTurn).catch((error: unknown) => {
        if (!signal.aborted) app.log.error({ err: error }, 'the upkeep could not begin');
      });
    }
  });
  app.addHook('onClose', async () => {
    stop.abort();
    await working;
    await end?.();
  });
}
