import type { ErrorDetail } from '../../core/errors.ts';

/** What is wrong with the URL of a target. Where its name leads to is checked at each connection. */
export function faultsOfUrl(field: string, text: string, allowsPlain: boolean): ErrorDetail[] {
  const url = URL.parse(text);
  const fault = (message: string) => [{ field, message }];
  if (url === null || url.hostname === '') return fault('must be a URL that begins with https://');
  if (url.username !== '' || url.password !== '') return fault('must have no user and no password: use a header');
  if (url.hash !== '') return fault('must have no fragment');
  if (url.protocol === 'https:' || (url.protocol === 'http:' && allowsPlain)) return [];
  return fault('must begin with https://');
}
