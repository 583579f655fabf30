import { type TInteger, Type } from 'typebox';

export interface QueryIntegerOptions {
  minimum: number;
  maximum: number;
  default?: number;
  description?: string;
  /** The message for anything but such a number, where clients match a certain one. */
  message?: string;
  /** The message for a number above the maximum. Default: `message`. */
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
