import { type TStringOptions, Type } from 'typebox';
import type { ErrorDetail } from '../../core/errors.ts';
import type { GuardedHttp } from './guarded-http.ts';

/** A name without the characters that no host has, or an IPv6 address. */
const host = '(?:[^\\u0000-\\u0020\\u007f"#%/:<>?@[\\\\\\]^`{|}]+|\\[[0-9A-Fa-f:.]+\\])(?::[0-9]{1,5})?';

/** The URL of a target. `rest`: the pattern of what follows the host. */
export function targetUrl(rest: string, options: TStringOptions = {}) {
  return Type.String({
    maxLength: 2_000,
    pattern: `^https?://${host}${rest}$`,
    'x-must': 'be a URL that begins with https://, without user, password and fragment',
    ...options,
  });
}

/** What is wrong with the URL of a target beyond its schema. Where its name leads to is checked at each connection. */
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
