import { isIP } from 'node:net';
import { databaseUrlFault } from './database-url.ts';
import { readTraceSettings, type TraceSettings } from './trace-settings.ts';

/** The settings of the service, read once from the environment (contract 1). */
export interface Config {
  host: string;
  /** 0: a free port is picked. */
  port: number;
  /** Undefined: the embedded PostgreSQL, in `dataDir`. */
  databaseUrl: string | undefined;
  dataDir: string;
  /** 32 bytes each: the first encrypts, all decrypt. Empty only without `databaseUrl`: then one is kept in `dataDir`. */
  secretKeys: Buffer[];
  /** The public address, without a slash at its end; names the token issuer. Its path stands before every link. */
  baseUrl: string | undefined;
  /** Origins whose pages may call the service; `*` is any, none at all keeps browsers out. */
  corsOrigins: string[];
  /** Addresses and ranges of proxies; only their `X-Forwarded-*` headers are believed. */
  trustedProxies: string[];
  /** Requests a second of one tenant, over all processes. Undefined: no limit. */
  tenantRate: number | undefined;
  /** Whether people may sign in to the console over plain HTTP from other machines. */
  consoleInsecure: boolean;
  /** Where the recorder listens beside the service. Undefined: nowhere. */
  recorder: Listener | undefined;
  /** Where the process shows its metrics. Undefined: nowhere. */
  metrics: Listener | undefined;
  /** Undefined: traces are not exported. */
  traces: TraceSettings | undefined;
  /** The file of the recorder's mapping. */
  recorderMapping: string | undefined;
  /** Processes that answer on the one port; `max`: one for each core. */
  workers: number | 'max';
  logLevel: LogLevel;
  sharedProviderToken: string | undefined;
  completionModel: string;
  completionMaxTokens: number;
  /** Undefined: the vendor's own. */
  providerBaseUrls: Record<Provider, string | undefined>;
  selfHostedAllow: AllowedAddress[];
  /** Undefined: the built-in catalogue. */
  modelsFile: string | undefined;
  mail: { smtpUrl: string; from: string } | undefined;
}

/** An address that a process listens on; port 0: a free port is picked. */
export interface Listener {
  host: string;
  port: number;
}

export type LogLevel = (typeof logLevels)[number];
export type Provider = 'openai' | 'anthropic' | 'google';

/** A private address that agents may call: a range of them, or one host (a name or an address) with its port. */
export type AllowedAddress =
  | { kind: 'range'; address: string; prefix: number }
  | { kind: 'host'; host: string; port: number };

/** All faults of the environment together. The message has no values, because some are secrets. */
export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

const howToMakeKey =
  'make one with "openssl rand -base64 32" or ' +
  `"node -p 'require("crypto").randomBytes(32).toString("base64")'" and keep it: without it nothing sealed opens again`;

/** Reads the environment; throws a ConfigError that names every fault. An empty variable counts as absent. */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const faults: string[] = [];

  function text(name: string): string | undefined {
    const value = environment[name]?.trim();
    return value === '' ? undefined : value;
  }

  /** Parses a variable. Where it is wrong, notes the fault and returns the default. */
  function parsed<Value, Default>(name: string, parse: (value: string) => Value | Fault, absent: Default) {
    const value = text(name);
    if (value === undefined) return absent;
    const result = parse(value);
    if (!(result instanceof Fault)) return result;
    faults.push(`${name} ${result.message}`);
    return absent;
  }

  const databaseUrl = parsed('DATABASE_URL', parseDatabaseUrl, undefined);
  const secretKeys = parsed('ANNALS_SECRET_KEY', parseSecretKeys, []);
  if (text('DATABASE_URL') !== undefined && text('ANNALS_SECRET_KEY') === undefined) {
    faults.push(`ANNALS_SECRET_KEY is required with DATABASE_URL: ${howToMakeKey}`);
  }
  const smtpUrl = parsed('SMTP_URL', urlWith(['smtp:', 'smtps:']), undefined);
  const mailFrom = parsed('MAIL_FROM', parseMailAddress, undefined);
  if (text('SMTP_URL') !== undefined && text('MAIL_FROM') === undefined) {
    faults.push('MAIL_FROM is required with SMTP_URL: the address that e-mails come from');
  }
  const host = text('HOST') ?? '127.0.0.1';
  const config: Config = {
    host,
    port: parsed('PORT', wholeNumber(0, 65535), 8080),
    databaseUrl,
    dataDir: text('ANNALS_DATA_DIR') ?? './data',
    secretKeys,
    baseUrl: parsed('ANNALS_BASE_URL', parsePublicUrl, undefined),
    corsOrigins: parsed('ANNALS_CORS_ORIGINS', parseOrigins, ['*']),
    trustedProxies: parsed('ANNALS_TRUSTED_PROXIES', parseProxies, ['loopback']),
    tenantRate: parsed('ANNALS_TENANT_RATE', wholeNumber(1, 1_000_000), undefined),
    consoleInsecure: parsed('ANNALS_CONSOLE_INSECURE', parseSwitch, false),
    recorder: parsed('ANNALS_RECORDER_PORT', (value) => parseListener(value, host), undefined),
    metrics: parsed('ANNALS_METRICS_PORT', (value) => parseListener(value, host), undefined),
    traces: readTraceSettings(text, (fault) => faults.push(fault)),
    recorderMapping: text('ANNALS_RECORDER_MAPPING'),
    workers: parsed('ANNALS_WORKERS', parseWorkers, 1),
    logLevel: parsed('LOG_LEVEL', parseLogLevel, 'info'),
    sharedProviderToken: parsed('ANNALS_SHARED_PROVIDER_TOKEN', parseToken, undefined),
    completionModel: text('ANNALS_COMPLETION_MODEL') ?? 'gpt-5.4-mini',
    completionMaxTokens: parsed('ANNALS_COMPLETION_MAX_TOKENS', wholeNumber(1, 1_000_000), 4096),
    providerBaseUrls: {
      openai: parsed('OPENAI_BASE_URL', parseBaseUrl, undefined),
      anthropic: parsed('ANTHROPIC_BASE_URL', parseBaseUrl, undefined),
      google: parsed('GOOGLE_BASE_URL', parseBaseUrl, undefined),
    },
    selfHostedAllow: parsed('ANNALS_SELF_HOSTED_ALLOW', parseAllowedAddresses, []),
    modelsFile: text('ANNALS_MODELS_FILE'),
    mail: smtpUrl === undefined || mailFrom === undefined ? undefined : { smtpUrl, from: mailFrom },
  };
  if (faults.length > 0) throw new ConfigError(faults);
  return config;
}

/** What is wrong with a value: the end of a sentence that begins with the name of the variable. */
class Fault {
  readonly message: string;

  constructor(message: string) {
    this.message = message;
  }
}

function wholeNumber(min: number, max: number): (value: string) => number | Fault {
  return (value) => {
    const number = Number(value);
    if (/^\d{1,9}$/.test(value) && number >= min && number <= max) return number;
    return new Fault(`must be a whole number from ${min} to ${max}`);
  };
}

/** More processes than this take more connections than a PostgreSQL has. */
export const maxWorkers = 128;

function parseWorkers(value: string): number | 'max' | Fault {
  if (value === 'max') return value;
  const number = wholeNumber(1, maxWorkers)(value);
  return number instanceof Fault ? new Fault(`${number.message}, or max for one for each core`) : number;
}

function parseSwitch(value: string): boolean | Fault {
  if (value === 'true' || value === 'false') return value === 'true';
  return new Fault('must be true or false');
}

function urlWith(protocols: string[]): (value: string) => string | Fault {
  return (value) => {
    const url = URL.parse(value);
    if (url !== null && protocols.includes(url.protocol)) return value;
    return new Fault(`must be a URL that begins with ${protocols.map((protocol) => `${protocol}//`).join(' or ')}`);
  };
}

function parseDatabaseUrl(value: string): string | Fault {
  const url = urlWith(['postgres:', 'postgresql:'])(value);
  const fault = typeof url === 'string' ? databaseUrlFault(url) : undefined;
  return fault === undefined ? url : new Fault(fault);
}

/** A port on the host of the service, or `host:port`. */
function parseListener(value: string, defaultHost: string): Listener | Fault {
  const [, host = defaultHost, digits = ''] = /^(?:(.+):)?(\d{1,5})$/.exec(value) ?? [];
  const port = Number(digits);
  if (digits === '' || port > 65535) return new Fault('must be a port from 0 to 65535, or host:port');
  return { host: host.replace(/^\[(.+)\]$/, '$1'), port };
}

function parseBaseUrl(value: string): string | Fault {
  const url = URL.parse(value);
  const plain = url !== null && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (plain && /^https?:$/.test(url.protocol)) return value.replace(/\/+$/, '');
  return new Fault('must be a URL that begins with http:// or https://, without user, query and fragment');
}

/** First parts of the service's own paths. Annals could not tell a public address that begins with one from them. */
export const ownSegments: readonly string[] = [
  '.well-known',
  'ai-service',
  'changelog',
  'configuration',
  'console',
  'docs',
  'health',
  'oauth',
  'openapi.json',
  'schema',
  'usage',
];

function parsePublicUrl(value: string): string | Fault {
  const url = parseBaseUrl(value);
  if (url instanceof Fault) return url;
  const [, segment = ''] = new URL(url).pathname.split('/');
  if (!ownSegments.includes(segment)) return url;
  return new Fault(`must have a path that does not begin with /${segment}, which is a path of the service itself`);
}

function parseOrigins(value: string): string[] | Fault {
  if (value === 'none') return [];
  const origins = value.split(',').map((origin) => origin.trim());
  const areOrigins = origins.every((origin) => origin === '*' || URL.parse(origin)?.origin === origin);
  return areOrigins
    ? origins
    : new Fault('must be a comma-separated list of origins such as https://shop.example, * or none');
}

function parseProxies(value: string): string[] | Fault {
  if (value === 'none') return [];
  const proxies = value.split(',').map((proxy) => proxy.trim());
  const wrong = proxies.findIndex((proxy) => proxy !== 'loopback' && !((parseRange(proxy)?.prefix ?? 0) > 0));
  if (wrong === -1) return proxies;
  return new Fault(
    'must be a comma-separated list of addresses (10.1.2.3), ranges (10.0.0.0/8) and the word loopback, or none; ' +
      `number ${wrong + 1} is none of them`,
  );
}

function parseLogLevel(value: string): LogLevel | Fault {
  return logLevels.find((level) => level === value) ?? new Fault(`must be one of ${logLevels.join(', ')}`);
}

function parseToken(value: string): string | Fault {
  // It travels in a header, which takes visible ASCII alone.
  return /^[\x21-\x7e]+$/.test(value) ? value : new Fault('must be visible ASCII characters without blanks');
}

function parseMailAddress(value: string): string | Fault {
  return /^[^\r\n]*[^\s@<]+@[^\s@>]+>?$/.test(value) ? value : new Fault('must be an e-mail address');
}

function parseSecretKeys(value: string): Buffer[] | Fault {
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

function parseAllowedAddresses(value: string): AllowedAddress[] | Fault {
  const allowed: AllowedAddress[] = [];
  for (const [index, part] of value.split(',').entries()) {
    const address = parseRange(part.trim()) ?? parseHost(part.trim());
    if (address === undefined) {
      return new Fault(
        'must be a list, with commas, of ranges (10.0.0.0/8), addresses (10.1.2.3) and hosts with a port ' +
          `(ollama:11434, [fd00::1]:8000); number ${index + 1} is none of them`,
      );
    }
    allowed.push(address);
  }
  return allowed;
}

function parseRange(part: string): (AllowedAddress & { kind: 'range' }) | undefined {
  const [, address = '', digits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(part) ?? [];
  const family = isIP(address);
  if (family === 0) return undefined;
  const maxPrefix = family === 4 ? 32 : 128;
  const prefix = digits === undefined ? maxPrefix : Number(digits);
  return prefix <= maxPrefix ? { kind: 'range', address, prefix } : undefined;
}

function parseHost(part: string): AllowedAddress | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([\w.-]+)):(\d{1,5})$/.exec(part) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65535) return undefined;
  if (bracketed !== undefined && isIP(bracketed) !== 6) return undefined;
  return { kind: 'host', host: host.toLowerCase(), port };
}
