import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { beginShortWork, LoopTurn } from '../core/fairness/time-slice.ts';
import type { HttpServer } from './http-server-type.ts';
import { maxBytesReadAtOnce } from './json-body.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Stops counting the request as short work. */
    endShortWork: (() => void) | undefined;
  }
}

/**
 * Counts requests without a long body as short work, for which long computations of other tenants leave room, until
 * their answer begins; a call of a provider, which may take minutes, until its body is validated.
 */
export function countShortRequests(app: HttpServer): void {
  app.decorateRequest('endShortWork');
  app.addHook('onRequest', (request, reply, done) => {
    if (!hasLongBody(request)) {
      // The tenant is not known yet.
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

/** Milliseconds after which a turn of the event loop begins no more requests. */
export const maxTurnOfRequests = 8;

/**
 * Limits the requests that a turn of the event loop begins; the others begin in the next turns, in order. Otherwise the
 * loop would begin and answer all arrived requests, perhaps hundreds, in one turn. A waiting request has cost only the
 * parsing of its head. Call it before other hooks are added, except those that measure.
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
    // Includes the request's synchronous work, which is done before the next tick.
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

  // Before Fastify, whose start of a request takes several times as long as parsing its head.
  const listeners = app.server.listeners('request');
  app.server.removeAllListeners('request');
  app.server.on('request', (message: IncomingMessage, response: ServerResponse) =>
    beginInTurn(() => {
      admitted.add(message);
      for (const listener of listeners) Reflect.apply(listener, app.server, [message, response]);
    }),
  );
  // If `localhost` has several addresses, Fastify has a server for each, and exposes only the first.
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    if (admitted.has(raw)) done();
    else beginInTurn(done);
  });
}
