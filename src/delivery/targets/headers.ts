import { Type } from 'typebox';
import type { ErrorDetail } from '../../core/errors.ts';

export const maxHeaders = 20;
export const maxHeaderValue = 4_096;

/** Headers that a subscription adds to its requests. */
export const TargetHeaders = Type.Record(Type.String(), Type.String({ maxLength: maxHeaderValue }), {
  $id: 'TargetHeaders',
  description:
    'Headers that Annals adds. Their values are stored encrypted and never shown again. Headers of the transport, `content-…` and ' +
    '`webhook-…` cannot be set.',
  examples: [{ 'X-Tenant': 'acme' }],
});

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
  if (Object.keys(headers).length > maxHeaders) {
    return [{ field: 'target.headers', message: `must have at most ${maxHeaders} members` }];
  }
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
