import { createRequire } from 'node:module';
import { shared } from '../context/shared.ts';
import { warnOnce } from '../context/warning.ts';
import type { Callback, Client, Pool } from './internals.ts';
import { Line } from './line.ts';
import type { AttributeOptions } from './options.ts';

interface ClientClass {
  readonly prototype: Client;
}

interface PoolClass {
  readonly prototype: Pool;
}

/** On a function that attributes already, also by another copy of this package. */
const marked = Symbol.for('annals.attributed');
/** On a client: its Line. */
const lineKey = Symbol.for('annals.line.1');

interface Attributed {
  [lineKey]?: Line;
}

/** Attributes a class of clients, or one client or pool. */
export function attributeTarget(target: unknown, { capture = true }: AttributeOptions): void {
  if (typeof target === 'function') {
    if (isPool(target.prototype)) carryContext(target.prototype);
    else if (isClient(target.prototype)) attributeClass(target as unknown as ClientClass, capture);
    else throw unknownTarget();
  } else if (isPool(target) && Array.isArray(target._clients)) attributePool(target, capture);
  else if (isClient(target) && typeof target.connection === 'object') attributeMethods(target, capture);
  else throw unknownTarget();
}

function unknownTarget(): TypeError {
  return new TypeError(
    'attribute() takes a Client or a Pool class of pg, a pool or a client. The native bindings are not supported',
  );
}

function isPool(value: unknown): value is Pool {
  return hasMethods(value, ['connect', '_pulseQueue']);
}

function isClient(value: unknown): value is Client {
  return hasMethods(value, ['connect', 'query', '_pulseQueryQueue', '_attachListeners']);
}

function hasMethods(value: unknown, names: readonly string[]): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return names.every((name) => typeof Reflect.get(value, name) === 'function');
}

function attributeClass(clients: ClientClass, isCaptured: boolean): void {
  attributeMethods(clients.prototype, isCaptured);
  for (const pools of poolsOf(clients)) carryContext(pools.prototype);
}

/** The Pool classes of the copies of pg that have this Client. None in a bundle. */
function poolsOf(clients: ClientClass): PoolClass[] {
  try {
    const modules = Object.values(createRequire(import.meta.url).cache);
    return modules.flatMap((module) => {
      const exported: unknown = module?.exports;
      if (typeof exported !== 'object' || exported === null || Reflect.get(exported, 'Client') !== clients) return [];
      const pools: unknown = Reflect.get(exported, 'Pool');
      return typeof pools === 'function' && isPool(pools.prototype) ? [pools as unknown as PoolClass] : [];
    });
  } catch {
    return [];
  }
}

function attributePool(pool: Pool, isCaptured: boolean): void {
  carryContext(pool);
  const attributeOne = (client: unknown) => {
    if (isClient(client)) attributeMethods(client, isCaptured);
    else warnOnce('UNKNOWN_PG', 'a client of a pool is not attributed: it is not that of the JavaScript driver');
  };
  for (const client of pool._clients) attributeOne(client);
  pool.on('connect', attributeOne);
}

/** A pool calls back in the context in which the client was released: the callback gets that of its own call. */
function carryContext(pool: Pool): void {
  replaceMethod(
    pool,
    'connect',
    (connect) =>
      function (this: Pool, ...values: unknown[]) {
        const bound = withStore(values);
        return shared.storage.run(undefined, () => Reflect.apply(connect, this, bound));
      },
  );
}

function attributeMethods(target: Client, isCaptured: boolean): void {
  if (typeof target.connection === 'object') openLine(target, isCaptured);
  // A connection's events run in the context in which it was opened, which may be that of another request.
  replaceMethod(
    target,
    'connect',
    (connect) =>
      function (this: Client, ...values: unknown[]) {
        forgetAtAcquire(this);
        openLine(this, isCaptured);
        const bound = withStore(values);
        return shared.storage.run(undefined, () => Reflect.apply(connect, this, bound));
      },
  );
  replaceMethod(
    target,
    'query',
    (query) =>
      function (this: Client, ...values: unknown[]) {
        return attributedQuery(this, openLine(this, isCaptured), query, values);
      },
  );
}

/**
 * A pool that is not attributed, as in a bundle, hands its clients to callbacks in any context, after it has set
 * `release`. They run in none, rather than in that of another request.
 */
function forgetAtAcquire(client: Client): void {
  if (Object.hasOwn(client, 'release')) return;
  let release: unknown;
  Object.defineProperty(client, 'release', {
    configurable: true,
    enumerable: true,
    get: () => release,
    set(value: unknown) {
      shared.storage.enterWith(undefined);
      const free = (...values: unknown[]) => shared.storage.run(undefined, value as Callback, ...values);
      release = typeof value === 'function' ? free : value;
    },
  });
}

/** The same values; a callback among them runs in the current context. */
function withStore(values: readonly unknown[]): unknown[] {
  const store = shared.storage.getStore();
  return values.map((value) =>
    typeof value === 'function'
      ? (...results: unknown[]) => shared.storage.run(store, value as Callback, ...results)
      : value,
  );
}

function attributedQuery(client: Client, line: Line, query: Callback, values: unknown[]): unknown {
  const [config] = values;
  const store = shared.storage.getStore();
  const isObject = typeof config === 'object' && config !== null;
  const call = {
    store,
    set: store?.set ?? {},
    isSubmittable: isObject && 'submit' in config && typeof config.submit === 'function',
    hasCallback:
      values.some((value) => typeof value === 'function') ||
      (isObject && 'callback' in config && typeof config.callback === 'function'),
  };
  return line.during(call, () => Reflect.apply(query, client, values));
}

/** The line of a client. Undefined if it is not attributed, or not connected. */
export function lineOf(client: Client & Attributed): Line | undefined {
  return client[lineKey];
}

function openLine(client: Client & Attributed, isCaptured: boolean): Line {
  const known = lineOf(client);
  if (known !== undefined) return known;
  const line = new Line(client, isCaptured);
  Object.defineProperty(client, lineKey, { value: line });
  return line;
}

function replaceMethod<Name extends string>(
  target: { [name in Name]: Callback },
  name: Name,
  replace: (method: Callback) => Callback,
): void {
  const method = target[name];
  if (Reflect.get(method, marked) === true) return;
  const replacement = replace(method);
  Object.defineProperty(replacement, 'name', { value: name, configurable: true });
  Object.defineProperty(replacement, 'length', { value: method.length, configurable: true });
  Object.defineProperty(replacement, marked, { value: true });
  Object.defineProperty(target, name, { configurable: true, writable: true, enumerable: false, value: replacement });
}
