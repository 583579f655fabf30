import { MalformedValue, type QueryParameters } from '../../http/query-parameters.ts';
import { TokenError } from './token-error.ts';

/** A token request with the client's credentials, from the header or from the body. */
export interface TokenRequest {
  grantType: string | undefined;
  clientId: string;
  clientSecret: string;
  scope: string | undefined;
}

/**
 * Checks what the grant library does not: repeated parameters (RFC 6749, 3.2), Basic credentials that are form-encoded
 * before base64 (2.3.1), and a single authentication method (2.3).
 */
export function readTokenRequest(authorization: string | undefined, form: QueryParameters): TokenRequest {
  const basic = authorization === undefined ? undefined : readBasic(authorization);
  const clientId = singleParameter(form, 'client_id');
  const clientSecret = singleParameter(form, 'client_secret');
  const request = { grantType: singleParameter(form, 'grant_type'), scope: singleParameter(form, 'scope') };
  if (basic === undefined) {
    if (clientId === undefined || clientSecret === undefined) {
      throw new TokenError('invalid_client', 'The client did not authenticate: client_id and client_secret are needed');
    }
    return { ...request, clientId, clientSecret };
  }
  // Some clients repeat their id in the body, which is no second method.
  if (clientSecret !== undefined || (clientId !== undefined && clientId !== basic.clientId)) {
    throw new TokenError('invalid_request', 'The client authenticates both by HTTP Basic and in the body');
  }
  return { ...request, ...basic };
}

/** The value of a parameter of a form; empty ones count as absent. Throws a TokenError if it is repeated. */
export function singleParameter(form: QueryParameters, name: string): string | undefined {
  const values = form[name];
  if (values === undefined) return undefined;
  const [value] = values;
  if (values.length > 1) throw new TokenError('invalid_request', `The parameter ${name} is repeated`);
  if (value instanceof MalformedValue) {
    throw new TokenError('invalid_request', `The parameter ${name} is not form-encoded UTF-8`);
  }
  // RFC 6749, 3.2: a parameter without a value is treated as omitted.
  return value === '' ? undefined : value;
}

/** Throws the TokenError invalid_client. */
export function readBasic(authorization: string): { clientId: string; clientSecret: string } {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(authorization)?.[1];
  if (encoded === undefined) throw new TokenError('invalid_client', 'The Authorization header is not HTTP Basic');
  const [id, ...secret] = Buffer.from(encoded, 'base64').toString('utf8').split(':');
  const clientId = formDecode(id ?? '');
  const clientSecret = formDecode(secret.join(':'));
  if (!clientId || !clientSecret) throw new TokenError('invalid_client', 'The Basic credentials are malformed');
  return { clientId, clientSecret };
}

function formDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
