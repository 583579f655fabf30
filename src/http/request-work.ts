import type { FastifyReply, FastifyRequest, RouteHandlerMethod, RouteOptions } from 'fastify';
import { type Release, Semaphore } from '../core/fairness/semaphore.ts';
import { enterWork, requestLimit, Work } from '../core/fairness/work.ts';
import { readAgainIfLost } from '../postgres/connections/unreachable.ts';
import { ClientGone } from './client-gone.ts';
import type { Credentials } from './credentials.ts';
import type { HttpServer } from './http-server-type.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The kind of the operation: it reads, writes, calls a provider, which may take minutes, or follows the feed.
     * Default: `reads` for GET and paths ending in /search, else `writes`.
     */
    work?: 'reads' | 'writes' | 'calls' | 'follows';
  }

  interface FastifyRequest {
    /** The work of the request's statements; null before its client is known. */
    work: Work | null;
    /** Work that may outlive the client's connection, and keeps the request's place until it ends. */
    placeKeptUntil: Promise<unknown> | null;
  }
}

/** Of one tenant in a process (contract 11). */
export const requestShares = {
  requests: { maxOfTenant: 64, maxWaitingOfTenant: 256, name: 'requests under way' },
  calls: {
    places: 128,
    maxOfTenant: 32,
    maxWaitingOfTenant: 256,
    name: 'event streams of chats and calls to providers',
  },
  // Half of a tenant's requests, so that viewers never block its console and its programs.
  viewers: { maxOfTenant: 32, maxWaitingOfTenant: 128, name: 'requests of viewers' },
  viewer: { maxOfTenant: 2, maxWaitingOfTenant: 16, name: 'requests of one viewer', of: 'subject' },
  follows: { places: 2_000, maxOfTenant: 1_000, maxWaitingOfTenant: 0, name: 'readers of the feed' },
};

/** Milliseconds that work has to end by itself after its limit. */
const grace = 500;

/**
 * Makes each request the current work of all that it starts: its statements end when its client is gone, or when its
 * headers are not sent within `limit` milliseconds. A tenant has at most 64 requests in progress; more wait, and then
 * are refused with 429. Call it after the hook that checks the token.
 */
export function limitRequests(app: HttpServer, limit = requestLimit): void {
  const requests = new Semaphore(requestShares.requests);
  const shares = {
    reads: requests,
    writes: requests,
    calls: new Semaphore(requestShares.calls),
    follows: new Semaphore(requestShares.follows),
  };
  const [viewers, viewer] = [new Semaphore(requestShares.viewers), new Semaphore(requestShares.viewer)];

  /** The places that a request needs, in the order in which it takes them. */
  function placesOf({ tenant, viewer: who }: Credentials, share: Semaphore): Place[] {
    const ofTenant = { share, owner: tenant };
    if (who === undefined) return [ofTenant];
    return [{ share: viewer, owner: `${tenant} ${who.subject}` }, { share: viewers, owner: tenant }, ofTenant];
  }

  app.decorateRequest('work', null);
  app.decorateRequest('placeKeptUntil', null);
  app.addHook('onRoute', (route) => {
    route.config = { work: workOf(route), ...route.config };
    if (route.config.work === 'reads' || route.config.work === 'follows') route.handler = repeatedIfLost(route.handler);
  });

  app.addHook('onRequest', (request, reply, done) => {
    const credentials = request.verifiedCredentials;
    if (credentials === null) {
      done();
      return;
    }
    if (reply.raw.closed) {
      done(new ClientGone());
      return;
    }
    const { work: kind = 'writes' } = request.routeOptions.config;
    const { tenant } = credentials;
    const work = new Work({
      tenant,
      writes: kind === 'writes' || kind === 'calls',
      ofViewers: credentials.viewer !== undefined,
    });
    limitTime(work, request, reply, limit);
    request.work = work;
    const places = placesOf(credentials, shares[kind]);
    const taken: Release[] = [];
    const release = () => {
      for (const giveBack of taken.splice(0)) giveBack();
    };
    const isTaken = places.every(({ share, owner }) => {
      const place = share.tryAcquire(owner);
      if (place !== undefined) taken.push(place);
      return place !== undefined;
    });
    // More listeners than the ten at which Node warns of a leak.
    reply.raw.setMaxListeners(20);
    reply.raw.once('close', () => {
      work.endLimit();
      if (request.placeKeptUntil === null) release();
      else request.placeKeptUntil.then(release, release);
      if (!reply.raw.writableFinished) work.abort(new ClientGone());
    });
    const begin = () => {
      // A provider may take minutes, so each statement has its own limit.
      if (kind === 'calls') work.endLimit();
      done();
    };
    if (isTaken) {
      begin();
      return;
    }
    const wait = async () => {
      for (const { share, owner } of places.slice(taken.length)) taken.push(await share.acquire(owner, work.signal));
    };
    wait().then(() => {
      if (reply.raw.closed) release();
      begin();
    }, done);
  });

  // The time in which a client sends its body has its own limit.
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    if (hasBody(request)) request.work?.pauseLimit();
    done();
  });

  // Not before: the events of a body come from the socket, which belongs to no request.
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.work === null) {
      done();
      return;
    }
    request.work.resumeLimit();
    enterWork(request.work, done);
  });

  // The headers are sent now. Statements for the rest of the body have their own limits.
  app.addHook('onSend', (request, _reply, payload, done) => {
    request.work?.endLimit();
    done(null, payload);
  });
}

interface Place {
  readonly share: Semaphore;
  readonly owner: string;
}

/** Repeats a read once if its connection to the database was lost before its answer began. */
function repeatedIfLost(handler: RouteHandlerMethod): RouteHandlerMethod {
  return function (request, reply) {
    const mayRepeat = () => !reply.sent && request.work?.signal.aborted === false;
    return readAgainIfLost(() => handler.call(this, request, reply), mayRepeat);
  };
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

function workOf({ method, url }: RouteOptions): 'reads' | 'writes' {
  const isRead = [method].flat().every((name) => name === 'GET' || name === 'HEAD' || name === 'OPTIONS');
  return isRead || url.endsWith('/search') ? 'reads' : 'writes';
}

function limitTime(work: Work, request: FastifyRequest, reply: FastifyReply, limit: number): void {
  work.limit(limit);
  work.signal.addEventListener('abort', () => {
    if (reply.raw.closed) return;
    // Something other than a statement blocks it, so answer now.
    const late = setTimeout(() => {
      if (reply.sent || reply.raw.headersSent || reply.raw.closed) return;
      request.log.warn({ route: request.routeOptions.url }, 'a request was answered before its work had ended');
      reply.send(work.signal.reason);
      // Fastify would log the late result of the work as a second answer.
      reply.log = reply.log.child({}, { level: 'silent' });
    }, grace);
    reply.raw.once('close', () => clearTimeout(late));
  });
}
