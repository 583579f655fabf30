import type { FastifyRequest } from 'fastify';
import { AnnalsError } from '../core/errors.ts';
import type { Credentials } from '../http/credentials.ts';
import type { CallOrigin } from '../providers/call-record.ts';

/** The header that names the end user of a call, as UTF-8. */
export const userHeader = 'annals-user';

export const maxUserCharacters = 200;

/** The end user of a request's header; undefined without one. Throws validation_violation for an invalid one. */
export function userOfHeader({ headers, raw }: Pick<FastifyRequest, 'headers' | 'raw'>): string | undefined {
  const sent = headers[userHeader]?.toString();
  if (sent === undefined || sent === '') return undefined;
  if ((raw.headersDistinct[userHeader]?.length ?? 0) > 1) throw refused('must be there once');
  const user = textOf(sent);
  if (user === undefined) throw refused('must be UTF-8');
  if (user.length > maxUserCharacters) throw refused(`must have at most ${maxUserCharacters} characters`);
  return user;
}

/** Node reads a character from each byte. */
function textOf(header: string): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(header, 'latin1'));
  } catch {
    return undefined;
  }
}

function refused(message: string): AnnalsError {
  return new AnnalsError('validation_violation', 'The request is not valid.', {
    details: [{ field: userHeader, message }],
  });
}

/**
 * The end user of a call: that of the key, or else of the header, or else of the body, or else of its metadata, which
 * programs fill as they like. Throws insufficient_permissions where a call with a key that has a user names another one.
 */
export function endUserOf(
  { user: ofKey }: Pick<Credentials, 'user'>,
  named: {
    readonly header: string | undefined;
    readonly body?: string | undefined;
    readonly metadata?: string | undefined;
  },
): Pick<CallOrigin, 'user' | 'isUserFixed'> {
  const { header, body = '', metadata = '' } = named;
  const written = body === '' ? undefined : body;
  if (ofKey === undefined) {
    const user = header ?? written;
    return user === undefined && metadata !== '' ? { user: metadata, isUserFixed: false } : { user };
  }
  const other = Object.entries({ [userHeader]: header, user: written }).find(
    ([, user]) => user !== undefined && user !== ofKey,
  );
  if (other === undefined) return { user: ofKey, isUserFixed: true };
  throw new AnnalsError('insufficient_permissions', 'The key belongs to one user, and the call names another.', {
    details: [{ field: other[0], message: `must be left out, or be ${JSON.stringify(ofKey)}` }],
  });
}
