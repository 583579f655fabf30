import { type TSchema, Type } from 'typebox';
import type { ErrorDetail } from '../../core/errors.ts';

export const maxHeaders = 20;
export const maxHeaderValue = 4_096;

/** Headers that a subscription adds to its requests. */
export const TargetHeaders: TSchema = Type.Object(
  {},
  {
    maxProperties: maxHeaders,
    additionalProperties: Type.String({ maxLength: maxHeaderValue }),
    description:
      'Headers that Annals adds. Their values are stored encrypted and never shown again. Headers of the transport, `content-…` and ' +
      '`webhook-…` cannot be set.',
  },
);

/** Those that the transport, the body or the signature set. */
const ownHeaders = new Set([
  'accept-encoding',
  'connection',
  'date',
  'expect',
  'forwarded',
  'host',
  'idempotency-key',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'via',
]);

/** What is wrong with the headers of a target. A masked value is none: it stands for one that was checked. */
export function faultsOfHeaders(headers: Readonly<Record<string, string>>): ErrorDetail[] {
  const names = new Set<string>();
  return Object.entries(headers).flatMap(([name, value]): ErrorDetail[] => {
    const field = `target.headers.${name}`;
    const lower = name.toLowerCase();
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]{1,100}$/.test(lower)) return [{ field, message: 'is no name of a header' }];
    if (ownHeaders.has(lower) || /^(?:annals|content|proxy|webhook|x-forwarded)-/.test(lower)) {
      return [{ field, message: 'cannot be set: Annals sets it, or it is one of the transport' }];
    }
    if (names.has(lower)) return [{ field, message: 'is given twice' }];
    names.add(lower);
    return /^[\x20-\x7e]*$/.test(value) && value === value.trim()
      ? []
      : [{ field, message: 'must have visible ASCII characters and blanks alone' }];
  });
}
