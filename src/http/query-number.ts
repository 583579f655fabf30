import { type TInteger, Type } from 'typebox';

export interface QueryIntegerOptions {
  minimum: number;
  maximum: number;
  default?: number;
  description?: string;
  /** What is answered to anything but such a number, where clients match a certain message. */
  message?: string;
  /** The same for a number above the maximum alone; left out: `message`. */
  messageAbove?: string;
}

/**
 * A number in a query string is decimal digits alone (contract: errors). This is the schema, for `Type.Optional` and
 * the OpenAPI document; `query-parameters.ts` reads the value, without any coercion.
 */
export function queryInteger({ message, messageAbove, ...options }: QueryIntegerOptions): TInteger {
  return Type.Integer({
    ...options,
    ...(message === undefined ? {} : { 'x-message': message }),
    ...(messageAbove === undefined ? {} : { 'x-message-above': messageAbove }),
  });
}

/** The number that these digits write, or undefined: `1.0`, `+1`, `1e1`, ` 1` and the empty string are none. */
export function decimalDigits(text: string): number | undefined {
  return /^[0-9]+$/.test(text) ? Number(text) : undefined;
}
