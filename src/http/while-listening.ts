import { unlessAborted } from '../core/fairness/deadline.ts';
import { repeat, rest } from '../core/repeat.ts';
import type { HttpServer } from './http-server-type.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Resolves when the upkeep of several processes becomes the part of this one; undefined where it is from the start.
     */
    upkeepTurn: Promise<void> | undefined;
  }
}

/** Work that is repeated beside the requests. */
export interface Upkeep {
  /** For the log: `the upkeep of agents`. */
  readonly what: string;
  /** Milliseconds of rest after each time. */
  readonly every: number;
  /** What it throws is logged, and it is tried again. The signal is given when the server closes. */
  work(signal: AbortSignal, onError: (error: unknown) => void): Promise<unknown>;
}

export interface WhileListening {
  readonly upkeep: readonly Upkeep[];
  /** Before the repeated work begins. */
  begin?(): Promise<void>;
  /** After its last time, when the server closes. */
  end?(): Promise<void> | void;
}

/** Milliseconds after which the next work begins, although the work before it has not ended its first time. */
const maxTurn = 1_000;

/** Of each server: resolves when the work that began last gives its turn to the next. */
const turns = new WeakMap<object, Promise<void>>();

/**
 * Repeats work for as long as the server listens, from its turn on where other processes listen on the same port. All work of a
 * server begins one after another: what begins at once opens as many connections, and a database that has just started opens them
 * slowly.
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
