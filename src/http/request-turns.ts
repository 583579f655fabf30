import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { beginShortWork, LoopTurn } from '../core/fairness/time-slice.ts';
import type { HttpServer } from './http-server-type.ts';
import { maxBytesReadAtOnce } from './json-body.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Ends the time in which long computations of other tenants leave the request room. */
    endShortWork: (() => void) | undefined;
  }
}

/**
 * Lets long computations of other tenants leave room for requests without a long body, until their answer begins. A request that calls a
 * provider, which may take minutes, has room until its body is checked.
 */
export function countShortRequests(app: HttpServer): void {
  app.decorateRequest('endShortWork');
  app.addHook('onRequest', (request, reply, done) => {
    if (!hasLongBody(request)) {
      // Nobody knows the tenant yet.
      request.endShortWork = beginShortWork('');
      reply.raw.once('close', () => request.endShortWork?.());
    }
    done();
  });
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    if (request.endShortWork !== undefined && request.verifiedCredentials !== null) {
      request.endShortWork();
      request.endShortWork = beginShortWork(request.verifiedCredentials.tenant);
    }
    done();
  });
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.routeOptions.config.work === 'calls') request.endShortWork?.();
    done();
  });
  app.addHook('onSend', (request, _reply, payload, done) => {
    request.endShortWork?.();
    done(null, payload);
  });
}

function hasLongBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > maxBytesReadAtOnce;
}

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
