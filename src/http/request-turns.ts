import type { IncomingMessage, ServerResponse } from 'node:http';
import { LoopTurn } from '../core/fairness/time-slice.ts';
import type { HttpServer } from './http-server-type.ts';

/** Milliseconds after which a turn of the event loop begins no further request. */
export const maxTurnOfRequests = 8;

/**
 * Lets a turn of the event loop begin only so many requests as it has time for; the others begin in the next turns, in the
 * order in which they came. Without that, the loop would begin and answer in one turn all requests that have arrived, be
 * they hundreds. A request that waits has cost no more than the reading of its head. To be called before other hooks are
 * added, apart from those that measure.
 */
export function beginRequestsInTurns(app: HttpServer): void {
  const waiting: (() => void)[] = [];
  const admitted = new WeakSet<IncomingMessage>();
  const turn = new LoopTurn();
  const isOver = () => turn.age() >= maxTurnOfRequests;

  function beginWaiting(): void {
    turn.begin();
    beginNext();
  }

  function beginNext(): void {
    waiting.shift()?.();
    if (waiting.length === 0) return;
    // What the request does at once counts too: it is done before the next tick.
    if (isOver()) setImmediate(beginWaiting);
    else process.nextTick(beginNext);
  }

  function beginInTurn(begin: () => void): void {
    if (waiting.length === 0 && !isOver()) {
      begin();
      return;
    }
    waiting.push(begin);
    if (waiting.length === 1) setImmediate(beginWaiting);
  }

  // Before Fastify, which takes several times as long to begin a request as Node takes to read its head.
  const listeners = app.server.listeners('request');
  app.server.removeAllListeners('request');
  app.server.on('request', (message: IncomingMessage, response: ServerResponse) =>
    beginInTurn(() => {
      admitted.add(message);
      for (const listener of listeners) Reflect.apply(listener, app.server, [message, response]);
    }),
  );
  // Where `localhost` has several addresses, Fastify has a server for each, and shows only the first.
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    if (admitted.has(raw)) done();
    else beginInTurn(done);
  });
}
