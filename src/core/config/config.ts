import {
  type AllowedAddress,
  type Listener,
  parseAllowedAddresses,
  parseAllowedOfTenants,
  parseHosts,
  parseListener,
  parseProxies,
} from './addresses.ts';
import { type OidcSettings, readOidcSettings } from './oidc-settings.ts';
import { readTraceSettings, type TraceSettings } from './trace-settings.ts';
import {
  databaseUrlFault,
  eitherOf,
  Fault,
  type HstsScope,
  howToMakeKey,
  hstsScopes,
  logLevels,
  oneOf,
  parseMailAddress,
  parseSchemes,
  parseSecretKeys,
  parseToken,
  parseWorkers,
  urlWith,
  wholeNumber,
} from './values.ts';

/** The settings of the service, read once from the environment (contract 1). */
export interface Config {
  host: string;
  /** 0: any free port. */
  port: number;
  /** Undefined: the embedded PostgreSQL, in `dataDir`. */
  databaseUrl: string | undefined;
  dataDir: string;
  /** 32 bytes each: the first encrypts, all decrypt. May be empty without `databaseUrl`: `dataDir` then has one. */
  secretKeys: Buffer[];
  /** The public address without a trailing slash; the issuer of tokens. Its path prefixes every link. */
  baseUrl: string | undefined;
  /** Origins whose pages may call the service; `*` is any, an empty list none. */
  corsOrigins: string[];
  /** The scope of Strict-Transport-Security. */
  hsts: HstsScope;
  /** Addresses and ranges of proxies whose `X-Forwarded-*` headers are trusted. */
  trustedProxies: string[];
  /** Requests a second of a tenant, over all processes. Undefined: unlimited. */
  tenantRate: number | undefined;
  /** Whether people may sign in to the console over plain HTTP from other machines. */
  consoleInsecure: boolean;
  /** The company's OpenID provider. Undefined: people sign in with clients and links only. */
  oidc: OidcSettings | undefined;
  /** Private-use schemes to which programs that sign in may be sent back. */
  redirectSchemes: string[];
  /** Where the recorder listens beside the service. Undefined: nowhere. */
  recorder: Listener | undefined;
  /** Where the process serves its metrics. Undefined: nowhere. */
  metrics: Listener | undefined;
  /** Undefined: traces are not exported. */
  traces: TraceSettings | undefined;
  /** The file of the recorder's mapping. */
  recorderMapping: string | undefined;
  /** The file of the key that signs histories. Undefined: nothing is sealed. */
  proofKeyFile: string | undefined;
  proofPolicyFile: string | undefined;
  /** Processes on the one port; `max`: one for each core. */
  workers: number | 'max';
  logLevel: (typeof logLevels)[number];
  sharedProviderToken: string | undefined;
  completionModel: string;
  completionMaxTokens: number;
  /** Milliseconds. */
  completionDrain: number;
  /** Undefined: the vendor's own. */
  providerBaseUrls: Record<Provider, string | undefined>;
  selfHostedAllow: AllowedAddress[];
  /** Object stores that may lack conditional writes, as `host` or `host:port`. */
  s3Unconditional: string[];
  /** Whether this process delivers to subscriptions. */
  deliveries: boolean;
  /** Private addresses that subscriptions may name, by tenant. */
  deliveryAllow: ReadonlyMap<string, readonly AllowedAddress[]>;
  /** Undefined: the built-in catalogue. */
  modelsFile: string | undefined;
  /** Undefined: the built-in prices only. */
  pricesFile: string | undefined;
  mail: { smtpUrl: string; from: string } | undefined;
}

export type Provider = 'openai' | 'anthropic' | 'google';

/** All faults of the environment. The message has no values, because some are secrets. */
export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

/** The data folder of the embedded database; undefined for another one. */
export function embeddedFolder({ databaseUrl, dataDir }: Pick<Config, 'databaseUrl' | 'dataDir'>): string | undefined {
  return databaseUrl === undefined ? dataDir : undefined;
}

/** Reads the environment. Throws a ConfigError with every fault. An empty variable counts as unset. */
export function readConfig(environment: Record<string, string | undefined>): Config {
  const faults: string[] = [];

  function text(name: string): string | undefined {
    const value = environment[name]?.trim();
    return value === '' ? undefined : value;
  }

  /** Parses a variable. If it is invalid, collects the fault and returns `absent`. */
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
  const baseUrl = parsed('ANNALS_BASE_URL', parsePublicUrl, undefined);
  const config: Config = {
    host,
    port: parsed('PORT', wholeNumber(0, 65535), 8080),
    databaseUrl,
    dataDir: text('ANNALS_DATA_DIR') ?? './data',
    secretKeys,
    baseUrl,
    corsOrigins: parsed('ANNALS_CORS_ORIGINS', parseOrigins, ['*']),
    // Below a path the host is shared with others.
    hsts: parsed(
      'ANNALS_HSTS',
      oneOf(hstsScopes),
      baseUrl === undefined || new URL(baseUrl).pathname === '/' ? 'host' : 'off',
    ),
    trustedProxies: parsed('ANNALS_TRUSTED_PROXIES', parseProxies, ['loopback']),
    tenantRate: parsed('ANNALS_TENANT_RATE', wholeNumber(1, 1_000_000), undefined),
    consoleInsecure: parsed('ANNALS_CONSOLE_INSECURE', eitherOf('true', 'false'), false),
    oidc: readOidcSettings({ text, parsed }, baseUrl, (fault) => faults.push(fault)),
    redirectSchemes: parsed('ANNALS_REDIRECT_SCHEMES', parseSchemes, ['cursor', 'vscode']),
    recorder: parsed('ANNALS_RECORDER_PORT', (value) => parseListener(value, host), undefined),
    metrics: parsed('ANNALS_METRICS_PORT', (value) => parseListener(value, host), undefined),
    traces: readTraceSettings({ text, parsed }),
    recorderMapping: text('ANNALS_RECORDER_MAPPING'),
    proofKeyFile: text('ANNALS_PROOF_KEY_FILE'),
    proofPolicyFile: text('ANNALS_PROOF_POLICY'),
    workers: parsed('ANNALS_WORKERS', parseWorkers, 1),
    logLevel: parsed('LOG_LEVEL', oneOf(logLevels), 'info'),
    sharedProviderToken: parsed('ANNALS_SHARED_PROVIDER_TOKEN', parseToken, undefined),
    completionModel: text('ANNALS_COMPLETION_MODEL') ?? 'gpt-5.4-mini',
    completionMaxTokens: parsed('ANNALS_COMPLETION_MAX_TOKENS', wholeNumber(1, 1_000_000), 4096),
    completionDrain: parsed('ANNALS_COMPLETION_DRAIN', wholeNumber(0, 600), 10) * 1_000,
    providerBaseUrls: {
      openai: parsed('OPENAI_BASE_URL', parseBaseUrl, undefined),
      anthropic: parsed('ANTHROPIC_BASE_URL', parseBaseUrl, undefined),
      google: parsed('GOOGLE_BASE_URL', parseBaseUrl, undefined),
    },
    deliveries: parsed('ANNALS_DELIVERIES', eitherOf('on', 'off'), true),
    deliveryAllow: parsed('ANNALS_DELIVERY_ALLOW', parseAllowedOfTenants, new Map<string, readonly AllowedAddress[]>()),
    s3Unconditional: parsed('ANNALS_S3_UNCONDITIONAL', parseHosts, []),
    selfHostedAllow: parsed('ANNALS_SELF_HOSTED_ALLOW', parseAllowedAddresses, []),
    modelsFile: text('ANNALS_MODELS_FILE'),
    pricesFile: text('ANNALS_PRICES_FILE'),
    mail: smtpUrl === undefined || mailFrom === undefined ? undefined : { smtpUrl, from: mailFrom },
  };
  if (faults.length > 0) throw new ConfigError(faults);
  return config;
}

function parseDatabaseUrl(value: string): string | Fault {
  const url = urlWith(['postgres:', 'postgresql:'])(value);
  const fault = typeof url === 'string' ? databaseUrlFault(url) : undefined;
  return fault === undefined ? url : new Fault(fault);
}

function parseBaseUrl(value: string): string | Fault {
  const url = URL.parse(value);
  const plain = url !== null && url.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (plain && /^https?:$/.test(url.protocol)) return value.replace(/\/+$/, '');
  return new Fault('must be a URL that begins with http:// or https://, without user, query and fragment');
}

/** First segments of the service's own paths, with which a public address must not begin. */
export const ownSegments: readonly string[] = [
  '.well-known',
  'access',
  'ai-service',
  'changelog',
  'configuration',
  'console',
  'docs',
  'health',
  'mcp',
  'oauth',
  'openapi.json',
  'schema',
  'usage',
  'viewer',
  'viewer.js',
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
