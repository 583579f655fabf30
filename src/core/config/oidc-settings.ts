import { readFileSync } from 'node:fs';
import { type EnvironmentReader, Fault, urlWith } from './values.ts';

/** The company's OpenID provider, and the file with the rules of access. */
export interface OidcSettings {
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** Requested in addition to `openid profile email offline_access`. */
  scopes: readonly string[];
  rulesFile: string;
  /** The public address, to which the provider redirects people. */
  baseUrl: string;
}

const optional = ['ANNALS_OIDC_CLIENT_SECRET', 'ANNALS_OIDC_CLIENT_SECRET_FILE', 'ANNALS_OIDC_SCOPE'] as const;
const variables = ['ANNALS_OIDC_ISSUER', 'ANNALS_OIDC_CLIENT_ID', 'ANNALS_OIDC_RULES'] as const;

/** Reads the variables. Undefined if none is set; otherwise all required ones must be. */
export function readOidcSettings(
  { text, parsed }: EnvironmentReader,
  baseUrl: string | undefined,
  onFault: (fault: string) => void,
): OidcSettings | undefined {
  const issuer = parsed('ANNALS_OIDC_ISSUER', parseIssuer, undefined);
  const clientId = text('ANNALS_OIDC_CLIENT_ID');
  const rulesFile = text('ANNALS_OIDC_RULES');
  const scopes = parsed('ANNALS_OIDC_SCOPE', parseScopes, []);
  const fromFile = parsed('ANNALS_OIDC_CLIENT_SECRET_FILE', readSecretFile, undefined);
  const clientSecret = text('ANNALS_OIDC_CLIENT_SECRET') ?? fromFile;
  const isAbsent = [...variables, ...optional].every((name) => text(name) === undefined);
  if (isAbsent) return undefined;
  for (const name of variables) {
    if (text(name) === undefined) onFault(`${name} is required if another ANNALS_OIDC_ variable is set`);
  }
  if (text('ANNALS_OIDC_CLIENT_SECRET') !== undefined && text('ANNALS_OIDC_CLIENT_SECRET_FILE') !== undefined)
    onFault(
      'ANNALS_OIDC_CLIENT_SECRET and ANNALS_OIDC_CLIENT_SECRET_FILE are both set: unset one, since they may differ',
    );
  if (clientSecret === undefined && text('ANNALS_OIDC_CLIENT_SECRET_FILE') === undefined)
    onFault('ANNALS_OIDC_CLIENT_SECRET is required, or ANNALS_OIDC_CLIENT_SECRET_FILE with the file that has it');
  if (baseUrl === undefined)
    onFault('ANNALS_BASE_URL is required with ANNALS_OIDC_ISSUER: the provider sends people back there');
  if (issuer === undefined || clientId === undefined || rulesFile === undefined) return undefined;
  if (clientSecret === undefined || baseUrl === undefined) return undefined;
  return { issuer, clientId, clientSecret, scopes, rulesFile, baseUrl };
}

function parseIssuer(value: string): string | Fault {
  const url = urlWith(['https:', 'http:'])(value);
  if (url instanceof Fault) return url;
  const { protocol, hostname, search, hash } = new URL(url);
  const isLoopback = /^(?:localhost|\[::1\]|127(?:\.\d+){3})$/.test(hostname);
  if (search === '' && hash === '' && (protocol === 'https:' || isLoopback)) return url;
  return new Fault(
    'must be a URL that begins with https://, without query and fragment; http:// is for this machine alone',
  );
}

/** Names of scopes have these characters (RFC 6749, 3.3). */
function parseScopes(value: string): readonly string[] | Fault {
  const scopes = value.split(/ +/).filter((scope) => scope !== '');
  return scopes.every((scope) => /^[!#-[\]-~]+$/.test(scope))
    ? scopes
    : new Fault('must be scopes with a space between them: groups offline_access');
}

function readSecretFile(file: string): string | Fault {
  try {
    const secret = readFileSync(file, 'utf8').trim();
    return secret === '' ? new Fault('names a file that is empty') : secret;
  } catch {
    return new Fault('names a file that cannot be read');
  }
}
