import { type TStringOptions, Type } from 'typebox';
import type { ErrorDetail } from '../../core/errors.ts';
import type { GuardedHttp } from './guarded-http.ts';

/** A host name or an IPv6 address. */
const host = '(?:[^\\u0000-\\u0020\\u007f"#%/:<>?@[\\\\\\]^`{|}]+|\\[[0-9A-Fa-f:.]+\\])(?::[0-9]{1,5})?';

/** The URL of a target. `rest`: the pattern after the host. */
export function targetUrl(rest: string, options: TStringOptions = {}) {
  return Type.String({
    maxLength: 2_000,
    pattern: `^https?://${host}${rest}$`,
    'x-must': 'be a URL that begins with https://, without user, password and fragment',
    ...options,
  });
}

/** Faults of a target's URL that its schema cannot express. The resolved address is checked on each connection. */
export function faultsOfUrl(
  field: string,
  text: string,
  http: Pick<GuardedHttp, 'faultOf'>,
  tenant: string,
): ErrorDetail[] {
  const url = URL.parse(text);
  const message = url === null ? 'must be a URL' : http.faultOf(tenant, url);
  return message === undefined ? [] : [{ field, message }];
}
