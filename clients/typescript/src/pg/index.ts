import { attributeTarget } from './attribute.ts';
import type { AttributeOptions } from './options.ts';
import { transaction } from './transaction.ts';

interface Attribute {
  /**
   * Attributes the changes of pg's clients to the current context of `@annals/client/context`: all of a class, those of a
   * pool, or one client. Returns what it was given. Throws a TypeError for anything else, such as the native bindings.
   *
   * @example
   * const pool = attribute(new pg.Pool());
   */
  <T>(target: T, options?: AttributeOptions): T;
  readonly transaction: typeof transaction;
}

export const attribute: Attribute = /* @__PURE__ */ Object.assign(
  <T>(target: T, options: AttributeOptions = {}): T => {
    attributeTarget(target, options);
    return target;
  },
  { transaction },
);

export type { AttributeOptions } from './options.ts';
export type { TransactionClient, TransactionPool } from './transaction.ts';
