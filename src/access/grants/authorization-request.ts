import { MalformedValue, type QueryParameters } from '../../http/query-parameters.ts';
import { tenantPattern } from '../../postgres/tenants/tenants.ts';

/** A request to sign in, as a program sent it. */
export interface AuthorizationRequest {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly state: string | undefined;
  /** Base64url of the SHA-256 of the verifier. */
  readonly challenge: string;
  /** Undefined: the tenant that the person chooses. */
  readonly tenant: string | undefined;
  /** The program does not want the person to see a page. */
  readonly isSilent: boolean;
}

/** Why a request is not shown to the person: a word of the console's page, in the address of which it stands. */
export type RequestFault = 'program' | 'redirect' | 'parameters' | 'type' | 'pkce' | 'scope' | 'resource' | 'length';

/** The only scope of grants. `offline_access` asks for the refresh token that every grant has. */
export const grantScope = 'changelog.changelog_read';
const acceptedScopes: ReadonlySet<string> = new Set([grantScope, 'offline_access']);

/** Characters. The request is kept in a cookie. */
const maxState = 1_024;

/** `address`: the public one, whose `/mcp/{tenant}` a grant is for. */
export function readAuthorizationRequest(
  parameters: QueryParameters,
  address: string,
): AuthorizationRequest | RequestFault {
  const known = new Map<string, string>();
  for (const [name, values = []] of Object.entries(parameters)) {
    const [value] = values;
    if (values.length > 1 || value instanceof MalformedValue) return name === 'resource' ? 'resource' : 'parameters';
    if (value !== undefined && value !== '') known.set(name, value);
  }
  const clientId = known.get('client_id');
  const redirectUri = known.get('redirect_uri');
  if (clientId === undefined) return 'program';
  if (redirectUri === undefined) return 'redirect';
  if (known.has('request') || known.has('request_uri')) return 'parameters';
  if (known.get('response_type') !== 'code' || (known.get('response_mode') ?? 'query') !== 'query') return 'type';
  const challenge = known.get('code_challenge') ?? '';
  if (known.get('code_challenge_method') !== 'S256' || !/^[\w-]{43}$/.test(challenge)) return 'pkce';
  const scopes = (known.get('scope') ?? '').split(' ').filter(Boolean);
  if (!scopes.every((scope) => acceptedScopes.has(scope))) return 'scope';
  const resource = known.get('resource');
  const tenant = resource === undefined ? undefined : tenantOfResource(resource, address);
  if (resource !== undefined && tenant === undefined) return 'resource';
  const state = known.get('state');
  if ((state ?? '').length > maxState) return 'length';
  return { clientId, redirectUri, state, challenge, tenant, isSilent: known.get('prompt') === 'none' };
}

/** The tenant of `{address}/mcp/{tenant}`; undefined for any other resource (RFC 8707). */
export function tenantOfResource(resource: string, address: string): string | undefined {
  const start = `${address}/mcp/`;
  const tenant = resource.startsWith(start) ? resource.slice(start.length).replace(/\/$/, '') : '';
  return tenantPattern.test(tenant) ? tenant : undefined;
}

/** The redirect URI with the answer, the state and the issuer (RFC 9207). Parameters of the URI itself stay. */
export function answerTo(
  { redirectUri, state }: { readonly redirectUri: string; readonly state?: string | undefined },
  answer: Readonly<Record<string, string>>,
  issuer: string,
): string {
  const parameters = new URLSearchParams({ ...answer, ...(state !== undefined && { state }), iss: issuer });
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}${parameters}`;
}
