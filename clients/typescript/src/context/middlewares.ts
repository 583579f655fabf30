import { AsyncResource } from 'node:async_hooks';
import { openRequest, type RequestFacts, type RequestOptions, type Resolve } from './request.ts';
import { type Store, shared } from './shared.ts';

// The parts of the frameworks' own types that are used, so that none of them is needed.

/** A request of Node, Express or Fastify, or a context of Koa. */
interface NodeRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly ip?: string | undefined;
  readonly socket?: { readonly remoteAddress?: string | undefined } | null | undefined;
  /** Node's own request, in Fastify and in Koa. */
  readonly raw?: object;
  readonly req?: object;
  /** Node's own response, in Koa. */
  readonly res?: object | undefined;
}

interface HonoContext {
  readonly req: { header(name: string): string | undefined };
  readonly env?: unknown;
}

/** An Express middleware. `resolve` gets the request. */
export function express<Request extends NodeRequest>(resolve: Resolve<Request>, options: RequestOptions = {}) {
  return (request: Request, response: unknown, next: (error?: unknown) => void): void => {
    shared.storage.run(openNodeRequest(request, response, resolve, options), () => next());
  };
}

/** A Koa middleware. `resolve` gets Koa's context. */
export function koa<Context extends NodeRequest>(resolve: Resolve<Context>, options: RequestOptions = {}) {
  return async (context: Context, next: () => Promise<unknown>): Promise<void> => {
    await shared.storage.run(openNodeRequest(context, context.res, resolve, options), next);
  };
}

/** A Hono middleware. `resolve` gets Hono's context. */
export function hono<Context extends HonoContext>(resolve: Resolve<Context>, options: RequestOptions = {}) {
  return async (context: Context, next: () => Promise<void>): Promise<void> => {
    const node = context.env as { incoming?: NodeRequest; outgoing?: object } | undefined;
    const facts = {
      header: (name: string) => context.req.header(name),
      address: () => addressOfNode(node?.incoming),
    };
    const store = openRequest(context, resolve, facts, options);
    carryResponse(node?.outgoing, store);
    await shared.storage.run(store, next);
  };
}

interface FastifyInstance<Request> {
  addHook(name: 'onRequest', hook: (request: Request, reply: unknown, done: () => void) => void): unknown;
}

/** A Fastify plugin, for the instance that registers it and those inside. `resolve` gets Fastify's request. */
export function fastify<Request extends NodeRequest>(resolve: Resolve<Request>, options: RequestOptions = {}) {
  const plugin = (instance: FastifyInstance<Request>, _options: unknown, done: () => void): void => {
    instance.addHook('onRequest', (request, reply, next) => {
      shared.storage.run(openNodeRequest(request, reply, resolve, options), next);
    });
    done();
  };
  return Object.assign(plugin, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: '@annals/client/context',
  });
}

interface NestExecution {
  switchToHttp(): { getRequest(): unknown; getResponse?(): unknown };
  getType?(): string;
}

/** A Nest interceptor, which runs after the guards. `resolve` gets the request of Nest's HTTP server. */
export function nest<Request extends NodeRequest>(resolve: Resolve<Request>, options: RequestOptions = {}) {
  return {
    intercept<T>(execution: NestExecution, next: { handle(): T }): T {
      if (execution.getType !== undefined && execution.getType() !== 'http') return next.handle();
      const http = execution.switchToHttp();
      const request = http.getRequest() as Request;
      // Nest binds what handle() returns to the context in which it was called.
      return shared.storage.run(openNodeRequest(request, http.getResponse?.(), resolve, options), () => next.handle());
    },
  };
}

/** The context of a request of Node's own servers, or of a framework whose requests and responses look like them. */
export function openNodeRequest<Request extends NodeRequest>(
  request: Request,
  response: unknown,
  resolve: Resolve<Request>,
  options: RequestOptions,
): Store {
  const facts: RequestFacts = {
    header(name) {
      const value = request.headers[name];
      return typeof value === 'string' ? value : undefined;
    },
    address: () => addressOfNode(request),
  };
  const store = openRequest(request, resolve, facts, options);
  carryEvents(request.raw ?? request.req ?? request, store);
  carryResponse(response, store);
  return store;
}

/** A response of Node, or of Fastify. */
function carryResponse(response: unknown, store: Store): void {
  if (typeof response !== 'object' || response === null) return;
  const raw = (response as { readonly raw?: object }).raw ?? response;
  carryEvents(raw, store);
  carryCallbacks(raw);
}

/** On a request or a response of Node: the context in which its events run. */
const storeKey = Symbol.for('annals.store.1');

interface Emitting {
  write?(...values: unknown[]): unknown;
  end?(...values: unknown[]): unknown;
  emit?(...values: unknown[]): unknown;
  [storeKey]?: Store;
}

/**
 * The body arrives in events of the socket, in whose context a handler that waits for it would go on. The events of a
 * response to a pipelined request are emitted in the context of the request before it.
 */
function carryEvents(message: Emitting, store: Store): void {
  const { emit } = message;
  if (typeof emit !== 'function') return;
  const isCarried = message[storeKey] !== undefined;
  Object.defineProperty(message, storeKey, { configurable: true, value: store });
  if (isCarried) return;
  Object.defineProperty(message, 'emit', {
    configurable: true,
    writable: true,
    value: (...values: unknown[]) => shared.storage.run(message[storeKey], () => Reflect.apply(emit, message, values)),
  });
}

/** The callbacks of a response run in the context in which they were passed. */
function carryCallbacks(response: Emitting): void {
  for (const name of ['write', 'end'] as const) {
    const method = response[name];
    if (typeof method !== 'function') continue;
    const value = function (this: unknown, ...values: unknown[]): unknown {
      const bound = values.map((one) => (typeof one === 'function' ? AsyncResource.bind(one as () => void) : one));
      return Reflect.apply(method, this, bound);
    };
    Object.defineProperty(response, name, { configurable: true, writable: true, value });
  }
}

function addressOfNode(request: NodeRequest | undefined): string | undefined {
  return request?.ip ?? request?.socket?.remoteAddress ?? undefined;
}
