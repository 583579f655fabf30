import { Type } from 'typebox';
import type { ErrorDetail } from '../core/errors.ts';

export const maxHeaders = 20;
export const maxHeaderValue = 4_096;

/** Headers that a tenant adds to requests to its own server. `reserved`: also not settable. */
export function tenantHeaders($id: string, reserved: string) {
  return Type.Record(Type.String(), Type.String({ maxLength: maxHeaderValue }), {
    $id,
    description:
      'Headers that Annals adds. Their values are stored encrypted and never shown again. Headers of the transport, `content-…` and ' +
      `${reserved} cannot be set.`,
    examples: [{ 'X-Tenant': 'acme' }],
  });
}

/** Set by the transport. */
const ownHeaders = new Set([
  'accept-encoding',
  'connection',
  'date',
  'expect',
  'forwarded',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'via',
]);

/**
 * The faults of such headers. `field`: their path in the body. `own`: lower-case names that Annals sets, apart from the
 * transport's. A masked value is valid: it stands for one that was checked.
 */
export function faultsOfHeaders(
  headers: Readonly<Record<string, string>>,
  { field: at, own }: { readonly field: string; readonly own: RegExp },
): ErrorDetail[] {
  const names = new Set<string>();
  if (Object.keys(headers).length > maxHeaders) {
    return [{ field: at, message: `must have at most ${maxHeaders} members` }];
  }
  return Object.entries(headers).flatMap(([name, value]): ErrorDetail[] => {
    const field = `${at}.${name}`;
    const lower = name.toLowerCase();
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]{1,100}$/.test(lower)) return [{ field, message: 'is no name of a header' }];
    if (ownHeaders.has(lower) || /^(?:annals|content|proxy|x-forwarded)-/.test(lower) || own.test(lower)) {
      return [{ field, message: 'cannot be set: Annals sets it, or it is one of the transport' }];
    }
    if (names.has(lower)) return [{ field, message: 'is given twice' }];
    names.add(lower);
    return /^[\x20-\x7e]*$/.test(value) && value === value.trim()
      ? []
      : [{ field, message: 'must have visible ASCII characters and blanks alone' }];
  });
}
