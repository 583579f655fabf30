import { randomUUID } from 'node:crypto';
import type { Context } from './context.ts';
import { type Store, shared } from './shared.ts';
import { createStore } from './store.ts';
import { warnOnce } from './warning.ts';

/** Who makes a request. Called once for each, before its handler. Nothing: the change has no actor. */
export type Resolve<Request> = (request: Request) => Context | null | undefined | Promise<Context | null | undefined>;

export interface RequestOptions {
  /**
   * Takes `correlationId` from the caller's `traceparent` (its trace id), else `x-request-id`. Only behind a proxy that
   * sets or checks them. Default false: a new UUID.
   */
  readonly trustCorrelation?: boolean;
  /** Adds the caller's address to `context` as `ip`. Default false. */
  readonly address?: boolean;
  /** Adds the caller's `User-Agent`, up to 500 characters, to `context` as `userAgent`. Default false. */
  readonly userAgent?: boolean;
}

/** What is read of a request, whatever the framework. */
export interface RequestFacts {
  readonly header: (name: string) => string | undefined;
  readonly address: () => string | undefined;
}

const maxUserAgent = 500;

/** A new context for a request, and calls `resolve` for it. */
export function openRequest<Request>(
  request: Request,
  resolve: Resolve<Request>,
  { header, address }: RequestFacts,
  options: RequestOptions,
): Store {
  const userAgent = options.userAgent === true ? header('user-agent')?.slice(0, maxUserAgent) : undefined;
  const ip = options.address === true ? address() : undefined;
  const correlationId = (options.trustCorrelation === true ? callersId(header) : undefined) ?? randomUUID();
  const details = { ...(ip !== undefined && { ip }), ...(userAgent !== undefined && { userAgent }) };
  const store = createStore({ correlationId, ...(Object.keys(details).length > 0 && { context: details }) });
  resolveInto(store, () => resolve(request));
  return store;
}

function resolveInto(store: Store, resolve: () => ReturnType<Resolve<never>>): void {
  try {
    // Its own queries are nobody's, and must not wait for it.
    const result = shared.storage.run(undefined, resolve);
    if (!isPromise(result)) {
      store.resolved = result ?? undefined;
      return;
    }
    const pending = Promise.resolve(result).then((context) => {
      store.resolved = context ?? undefined;
    }, warnOfFailure);
    store.pending = pending;
    void pending.then(() => {
      if (store.pending === pending) store.pending = undefined;
    });
  } catch (error) {
    warnOfFailure(error);
  }
}

function isPromise<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

function warnOfFailure(error: unknown): void {
  const name = error instanceof Error ? error.name : typeof error;
  warnOnce('RESOLVE_FAILED', `resolve failed (${name}): a change is recorded without its actor`);
}

const traceparent = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}(?:-|$)/;
const visibleAscii = /^[!-~]{1,200}$/;

function callersId(header: RequestFacts['header']): string | undefined {
  const [, trace] = traceparent.exec(header('traceparent') ?? '') ?? [];
  const id = trace ?? header('x-request-id');
  return id !== undefined && visibleAscii.test(id) ? id : undefined;
}
