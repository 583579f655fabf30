import { type Context, mergeContext } from './context.ts';
import { type Store, shared } from './shared.ts';
import { warnOnce } from './warning.ts';
import { wireText } from './wire-text.ts';

/** Milliseconds for which the first write of a request waits for `resolve`. */
const maxResolveWait = 250;

export function createStore(given: Context): Store {
  return { given, resolved: undefined, pending: undefined, set: {}, text: undefined };
}

/**
 * Calls `fn` with this context, and returns its result. It holds for everything that `fn` starts. Nested calls replace
 * the context as a whole.
 *
 * @example
 * await runWithContext({ actor: 'nightly cleanup' }, () => pool.query('delete from carts where expires < now()'));
 */
export function runWithContext<T>(context: Context, fn: () => T): T {
  return shared.storage.run(createStore(context), fn);
}

/**
 * Adds to the context, for the rest of the request or of `runWithContext`. `actor` or `actorId` replace both of them and
 * `onBehalfOf`; the members of `context` are merged. Returns false outside of a context, where it has no effect.
 */
export function setContext(part: Context): boolean {
  const store = shared.storage.getStore();
  if (store === undefined) return false;
  store.set = mergeContext(store.set, part);
  return true;
}

/** The current context. Undefined outside of a request and of `runWithContext`. */
export function currentContext(): Context | undefined {
  const store = shared.storage.getStore();
  return store && contextOf(store, store.set);
}

/** Calls `fn` outside of every context: its queries are not attributed. */
export function withoutContext<T>(fn: () => T): T {
  return shared.storage.run(undefined, fn);
}

/** The text of `annals.who`, as of the time when `set` was current. Undefined if it has no member. */
export function textOf(store: Store, set: Context): string | undefined {
  if (store.text?.set !== set || store.text.resolved !== store.resolved)
    store.text = { set, resolved: store.resolved, value: safeText(store, set) };
  return store.text.value;
}

/** A promise that ends once `resolve` has returned, at the latest after 250 ms. Undefined if there is nothing to wait for. */
export function resolution(store: Store): Promise<void> | undefined {
  const { pending } = store;
  if (pending === undefined) return undefined;
  return new Promise((done) => {
    const timer = setTimeout(() => {
      if (store.pending === pending) {
        store.pending = undefined;
        warnOnce('RESOLVE_LATE', `resolve took more than ${maxResolveWait} ms: a change is recorded without its actor`);
      }
      done();
    }, maxResolveWait);
    const finish = () => {
      clearTimeout(timer);
      done();
    };
    void pending.then(finish);
  });
}

/** A context may have getters of the application that throw. */
function safeText(store: Store, set: Context): string | undefined {
  try {
    return wireText(contextOf(store, set));
  } catch {
    warnOnce('CONTEXT', 'a context cannot be read: a change is recorded without it');
    return undefined;
  }
}

function contextOf({ given, resolved }: Store, set: Context): Context {
  return mergeContext(mergeContext(given, resolved), set);
}
