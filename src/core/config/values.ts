/** What is wrong with the parameters of DATABASE_URL; undefined if they are valid. */
export function databaseUrlFault(url: string): string | undefined {
  const poolers = new URL(url).searchParams.getAll('pooler');
  if (poolers.some((pooler) => pooler !== 'transaction')) return 'may have no other pooler than transaction';
  return tlsFault(url);
}

const tlsModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** What is wrong with `sslmode` and `sslrootcert` of the URL; undefined if they are valid. */
export function tlsFault(url: string): string | undefined {
  const parameters = new URL(url).searchParams;
  const mode = parameters.get('sslmode');
  const rootCertificate = parameters.get('sslrootcert');
  if (mode !== null && !tlsModes.includes(mode)) return `has an unknown sslmode; known are ${tlsModes.join(', ')}`;
  if (mode === 'verify-ca' && rootCertificate === null) return 'needs sslrootcert with sslmode=verify-ca';
  if (rootCertificate === 'system' && mode !== 'verify-full')
    return 'needs sslmode=verify-full with sslrootcert=system';
  return undefined;
}

/** Schemes that a browser runs, or that leave the computer as the web's own do. */
const refusedSchemes =
  /^(?:about|blob|chrome|data|file|filesystem|ftp|https?|intent|javascript|mailto|vbscript|view-source|wss?)$/;

/** Private-use URI schemes (RFC 8252, 7.1): `cursor,vscode`. */
export function parseSchemes(value: string): string[] | Fault {
  if (value === 'none') return [];
  const schemes = value.split(',').map((scheme) => scheme.trim());
  const wrong = schemes.findIndex((scheme) => !/^[a-z][a-z0-9+.-]{1,62}$/.test(scheme) || refusedSchemes.test(scheme));
  if (wrong === -1) return schemes;
  return new Fault(
    `must be a list, with commas, of private-use schemes (cursor, com.example.app), or none; number ${wrong + 1} is none`,
  );
}

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
/** Of Strict-Transport-Security. */
export const hstsScopes = ['off', 'host', 'subdomains'] as const;
export type HstsScope = (typeof hstsScopes)[number];

export function oneOf<const Value extends string>(values: readonly Value[]): (value: string) => Value | Fault {
  const fault = new Fault(`must be one of ${values.join(', ')}`);
  return (value) => values.find((known) => known === value) ?? fault;
}

export function eitherOf(yes: string, no: string): (value: string) => boolean | Fault {
  return (value) => (value === yes || value === no ? value === yes : new Fault(`must be ${yes} or ${no}`));
}

export const howToMakeKey =
  'make one with "openssl rand -base64 32" or ' +
  `"node -p 'require("crypto").randomBytes(32).toString("base64")'" and keep it: the secrets that Annals stores cannot be opened without it`;

export function wholeNumber(min: number, max: number): (value: string) => number | Fault {
  return (value) => {
    const number = Number(value);
    if (/^\d{1,9}$/.test(value) && number >= min && number <= max) return number;
    return new Fault(`must be a whole number from ${min} to ${max}`);
  };
}

export function urlWith(protocols: string[]): (value: string) => string | Fault {
  return (value) => {
    const url = URL.parse(value);
    if (url !== null && protocols.includes(url.protocol)) return value;
    return new Fault(`must be a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`);
  };
}

/** More processes would need more connections than PostgreSQL has. */
export const maxWorkers = 128;

export function parseWorkers(value: string): number | 'max' | Fault {
  if (value === 'max') return value;
  const number = wholeNumber(1, maxWorkers)(value);
  return number instanceof Fault ? new Fault(`${number.message}, or max for one for each core`) : number;
}

export function parseToken(value: string): string | Fault {
  // It is sent in a header, which takes only visible ASCII.
  return /^[\x21-\x7e]+$/.test(value) ? value : new Fault('must be visible ASCII characters without blanks');
}

export function parseMailAddress(value: string): string | Fault {
  return /^[^\r\n]*[^\s@<]+@[^\s@>]+>?$/.test(value) ? value : new Fault('must be an e-mail address');
}

export function parseSecretKeys(value: string): Buffer[] | Fault {
  const keys: Buffer[] = [];
  for (const [index, part] of value.split(',').entries()) {
    const encoded = part.trim();
    const key = Buffer.from(encoded, 'base64');
    if (!/^[\w+/-]{43}=?$/.test(encoded) || key.length !== 32) {
      return new Fault(
        `must be 32 bytes in base64, or several such keys with commas; number ${index + 1} is not: ${howToMakeKey}`,
      );
    }
    keys.push(key);
  }
  return keys;
}

export interface EnvironmentReader {
  text(name: string): string | undefined;
  /** Returns `absent` if the variable is unset or invalid; collects the fault. */
  parsed<Value, Default>(name: string, parse: (value: string) => Value | Fault, absent: Default): Value | Default;
}

/** What is wrong with a value, worded to follow the name of the variable. */
export class Fault {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}
