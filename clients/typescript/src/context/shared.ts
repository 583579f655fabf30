import { AsyncLocalStorage } from 'node:async_hooks';
import type { Context } from './context.ts';

/** The context of a request or of a call of `runWithContext`. */
export interface Store {
  readonly given: Context;
  /** By the application's `resolve`, once it has returned. */
  resolved: Context | undefined;
  /** Ends with `resolve`, and never rejects. Undefined once a write has waited for it as long as it may. */
  pending: Promise<void> | undefined;
  /** By setContext. Replaced, never changed. */
  set: Context;
  /** The text of the last context sent, and what it was made of. */
  text:
    | { readonly set: Context; readonly resolved: Context | undefined; readonly value: string | undefined }
    | undefined;
}

/**
 * What all copies of this package in a process share.
 *
 * @internal
 */
interface Shared {
  readonly storage: AsyncLocalStorage<Store | undefined>;
  /** Codes of warnings already emitted. */
  readonly warned: Set<string>;
}

// The number changes with the shape of Shared or Store.
const key = Symbol.for('annals.context.1');

const holder: { [key]?: Shared } = globalThis as { [key]?: Shared };

holder[key] ??= { storage: new AsyncLocalStorage<Store | undefined>(), warned: new Set() };

/** @internal */
export const shared: Shared = holder[key];
