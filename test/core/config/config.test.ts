import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../../src/core/config/config.ts';

const key = Buffer.alloc(32, 7).toString('base64');

test('an empty environment gives the defaults, and empty variables count as absent', () => {
  const defaults = readConfig({});
  expect(defaults).toMatchObject({
    host: '127.0.0.1',
    port: 8080,
    databaseUrl: undefined,
    dataDir: './data',
    secretKeys: [],
    baseUrl: undefined,
    logLevel: 'info',
    completionMaxTokens: 4096,
    completionDrain: 10_000,
    selfHostedAllow: [],
    deliveries: true,
    deliveryAllow: new Map(),
    mail: undefined,
  });
  expect(readConfig({ PORT: '', DATABASE_URL: ' ', ANNALS_SECRET_KEY: '' })).toEqual(defaults);
});

test('all faults are reported at once, and no value of a variable is ever repeated', () => {
  const secret = randomBytes(24).toString('hex');
  const environment = {
    PORT: `80${secret}`,
    DATABASE_URL: `mysql://root:${secret}@localhost/x`,
    ANNALS_SECRET_KEY: `${key},${secret}`,
    ANNALS_BASE_URL: `https://user:${secret}@annals.example`,
    ANNALS_SHARED_PROVIDER_TOKEN: `two words ${secret}`,
    ANNALS_COMPLETION_MAX_TOKENS: '0',
    ANNALS_COMPLETION_DRAIN: '10s',
    OPENAI_BASE_URL: secret,
    ANTHROPIC_BASE_URL: `ftp://${secret}`,
    GOOGLE_BASE_URL: `https://google.example/?key=${secret}`,
    ANNALS_SELF_HOSTED_ALLOW: `10.0.0.0/8,${secret}`,
    ANNALS_DELIVERY_ALLOW: `acme=10.0.0.0/8,${secret}`,
    ANNALS_DELIVERIES: secret,
    SMTP_URL: `https://me:${secret}@mail.example`,
    MAIL_FROM: secret,
    LOG_LEVEL: 'verbose',
  };
  const error = faultsOf(environment);
  for (const name of Object.keys(environment)) {
    expect(error.faults.filter((fault) => fault.startsWith(`${name} `))).toHaveLength(1);
  }
  expect(error.message).not.toContain(secret);
});

describe('ANNALS_SECRET_KEY', () => {
  test('goes with a URL that may name a pooler in transaction mode, and no other', () => {
    const settings = (pooler: string) => ({
      DATABASE_URL: `postgres://annals:pw@db.example/annals?pooler=${pooler}`,
      ANNALS_SECRET_KEY: Buffer.alloc(32).toString('base64'),
    });
    expect(readConfig(settings('transaction')).databaseUrl).toBe(settings('transaction').DATABASE_URL);
    const error = faultsOf(settings('session'));
    expect(error.message).toBe('DATABASE_URL may have no other pooler than transaction');
  });

  test.each([
    [
      'sslmode=verify',
      'DATABASE_URL has an unknown sslmode; known are disable, allow, prefer, require, verify-ca, verify-full',
    ],
    ['sslmode=verify-ca', 'DATABASE_URL needs sslrootcert with sslmode=verify-ca'],
    ['sslmode=require&sslrootcert=system', 'DATABASE_URL needs sslmode=verify-full with sslrootcert=system'],
  ])('with %s is refused', (parameters, message) => {
    const error = faultsOf({
      DATABASE_URL: `postgres://annals:pw@db.example/annals?${parameters}`,
      ANNALS_SECRET_KEY: randomBytes(32).toString('base64'),
    });
    expect(error.message).toBe(message);
  });

  test('is required with DATABASE_URL, and the fault says how to make one', () => {
    const error = faultsOf({ DATABASE_URL: 'postgres://annals:pw@db.example/annals' });
    expect(error.faults).toHaveLength(1);
    expect(error.message).toMatch(/^ANNALS_SECRET_KEY is required with DATABASE_URL: .*openssl rand -base64 32/);
  });

  test('lists keys of 32 bytes, the first first', () => {
    const second = randomBytes(32);
    const config = readConfig({ ANNALS_SECRET_KEY: `${key}, ${second.toString('base64')}` });
    expect(config.secretKeys).toEqual([Buffer.alloc(32, 7), second]);
  });

  test.each([randomBytes(31), randomBytes(33), randomBytes(16)])('of another length is a fault', (bytes) => {
    expect(faultsOf({ ANNALS_SECRET_KEY: bytes.toString('base64') }).message).toContain('32 bytes in base64');
  });
});

test('PORT takes whole numbers from 0 to 65535 alone', () => {
  expect(readConfig({ PORT: '0' }).port).toBe(0);
  expect(readConfig({ PORT: '65535' }).port).toBe(65535);
  for (const PORT of ['-1', '65536', '80.0', '1e3', '0x50', 'http']) {
    expect(faultsOf({ PORT }).faults).toEqual(['PORT must be a whole number from 0 to 65535']);
  }
});

test('addresses lose the slash at their end, since paths are put after them', () => {
  const config = readConfig({
    ANNALS_BASE_URL: 'https://annals.example/api/',
    OPENAI_BASE_URL: 'http://localhost:1/v1',
  });
  expect(config.baseUrl).toBe('https://annals.example/api');
  expect(config.providerBaseUrls.openai).toBe('http://localhost:1/v1');
});

test('ANNALS_DELIVERY_ALLOW takes ranges, addresses and hosts with a port, each for a tenant', () => {
  const config = readConfig({ ANNALS_DELIVERY_ALLOW: 'acme=10.0.0.0/8, acme=Erp:8443,other=[::1]:8000' });
  expect([...config.deliveryAllow]).toEqual([
    [
      'acme',
      [
        { kind: 'range', address: '10.0.0.0', prefix: 8 },
        { kind: 'host', host: 'erp', port: 8443 },
      ],
    ],
    ['other', [{ kind: 'host', host: '::1', port: 8000 }]],
  ]);
  for (const ANNALS_DELIVERY_ALLOW of ['10.0.0.0/8', 'acme=', 'Acme=10.0.0.0/8', 'acme=erp', 'acme=10.0.0.0/33', ',']) {
    expect(faultsOf({ ANNALS_DELIVERY_ALLOW }).faults).toHaveLength(1);
  }
});

test('ANNALS_DELIVERIES is on or off', () => {
  expect(readConfig({ ANNALS_DELIVERIES: 'off' }).deliveries).toBe(false);
  expect(readConfig({ ANNALS_DELIVERIES: 'on' }).deliveries).toBe(true);
  expect(faultsOf({ ANNALS_DELIVERIES: 'false' }).message).toBe('ANNALS_DELIVERIES must be on or off');
});

test('ANNALS_SELF_HOSTED_ALLOW takes ranges, addresses and hosts with a port', () => {
  const config = readConfig({ ANNALS_SELF_HOSTED_ALLOW: '10.0.0.0/8, fd00::/8,192.168.1.7, Ollama:11434,[::1]:8000' });
  expect(config.selfHostedAllow).toEqual([
    { kind: 'range', address: '10.0.0.0', prefix: 8 },
    { kind: 'range', address: 'fd00::', prefix: 8 },
    { kind: 'range', address: '192.168.1.7', prefix: 32 },
    { kind: 'host', host: 'ollama', port: 11434 },
    { kind: 'host', host: '::1', port: 8000 },
  ]);
  for (const ANNALS_SELF_HOSTED_ALLOW of ['10.0.0.0/33', 'ollama', 'ollama:0', 'ollama:70000', '[ollama]:80', ',']) {
    expect(faultsOf({ ANNALS_SELF_HOSTED_ALLOW }).faults).toHaveLength(1);
  }
});

test('SMTP_URL needs MAIL_FROM beside it', () => {
  const SMTP_URL = 'smtps://user:password@mail.example:465';
  expect(faultsOf({ SMTP_URL }).faults).toEqual([
    'MAIL_FROM is required with SMTP_URL: the address that e-mails come from',
  ]);
  for (const MAIL_FROM of ['annals@shop.example', 'Annals <annals@shop.example>']) {
    expect(readConfig({ SMTP_URL, MAIL_FROM }).mail).toEqual({ smtpUrl: SMTP_URL, from: MAIL_FROM });
  }
});

function faultsOf(environment: Record<string, string>): ConfigError {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('no fault was found');
}

test('ANNALS_RECORDER_PORT is a port on the host of the service, or host:port; without it there is no recorder', () => {
  const recorderOf = (value: string) => readConfig({ HOST: '10.1.2.3', ANNALS_RECORDER_PORT: value }).recorder;
  expect(readConfig({}).recorder).toBe(undefined);
  expect(recorderOf('0')).toEqual({ host: '10.1.2.3', port: 0 });
  expect(recorderOf('127.0.0.1:65535')).toEqual({ host: '127.0.0.1', port: 65535 });
  expect(recorderOf('[::1]:8081')).toEqual({ host: '::1', port: 8081 });
  for (const wrong of ['65536', '-1', '1e3', 'localhost', 'localhost:', ':8081x', '127.0.0.1:70000']) {
    expect(() => recorderOf(wrong)).toThrow(/^ANNALS_RECORDER_PORT must be a port from 0 to 65535, or host:port$/);
  }
});

test('ANNALS_METRICS_PORT is a port or host:port as well', () => {
  const metricsOf = (value: string) => readConfig({ HOST: '10.1.2.3', ANNALS_METRICS_PORT: value }).metrics;
  expect(readConfig({}).metrics).toBe(undefined);
  expect(metricsOf('65535')).toEqual({ host: '10.1.2.3', port: 65_535 });
  expect(metricsOf('0.0.0.0:9464')).toEqual({ host: '0.0.0.0', port: 9_464 });
  expect(() => metricsOf('65536')).toThrow(/^ANNALS_METRICS_PORT must be a port from 0 to 65535, or host:port$/);
});

test('ANNALS_TRUSTED_PROXIES is a list of addresses and ranges; the default is loopback alone', () => {
  const proxiesOf = (value: string) => readConfig({ ANNALS_TRUSTED_PROXIES: value }).trustedProxies;
  expect(readConfig({}).trustedProxies).toEqual(['loopback']);
  expect(proxiesOf('none')).toEqual([]);
  expect(proxiesOf('loopback, 10.1.2.3,10.0.0.0/8 , fd00::/8')).toEqual([
    'loopback',
    '10.1.2.3',
    '10.0.0.0/8',
    'fd00::/8',
  ]);
  for (const wrong of ['10.0.0', '0.0.0.0/0', '10.0.0.0/33', 'proxy.example', 'loopback,', '*', 'uniquelocal']) {
    expect(() => proxiesOf(wrong)).toThrow(/ANNALS_TRUSTED_PROXIES must be/);
  }
});

test('ANNALS_WORKERS is a whole number or max; it is 1 by default', () => {
  const workersOf = (value: string) => readConfig({ ANNALS_WORKERS: value }).workers;
  expect(workersOf('')).toBe(1);
  expect(['1', '2', '128', 'max'].map(workersOf)).toEqual([1, 2, 128, 'max']);
  for (const wrong of ['0', '-1', '1.5', '129', '1000', 'abc', 'MAX', '2e0']) {
    expect(() => workersOf(wrong)).toThrow(
      'ANNALS_WORKERS must be a whole number from 1 to 128, or max for one for each core',
    );
  }
});

test('ANNALS_TENANT_RATE is a whole number; there is none by default', () => {
  const rateOf = (value: string) => readConfig({ ANNALS_TENANT_RATE: value }).tenantRate;
  expect(readConfig({}).tenantRate).toBeUndefined();
  expect([rateOf('1'), rateOf('1000000')]).toEqual([1, 1_000_000]);
  for (const wrong of ['0', '1000001', '1.5', '-1', 'many']) {
    expect(() => rateOf(wrong)).toThrow('ANNALS_TENANT_RATE must be a whole number from 1 to 1000000');
  }
});

test('ANNALS_CORS_ORIGINS is a list of origins, * or none', () => {
  const originsOf = (value: string) => readConfig({ ANNALS_CORS_ORIGINS: value }).corsOrigins;
  expect(readConfig({}).corsOrigins).toEqual(['*']);
  expect(originsOf('none')).toEqual([]);
  expect(originsOf('https://a.example, http://localhost:3000')).toEqual(['https://a.example', 'http://localhost:3000']);
  for (const wrong of ['a.example', 'https://a.example/', 'https://a.example,', '**']) {
    expect(() => originsOf(wrong)).toThrow(/ANNALS_CORS_ORIGINS must be/);
  }
});

test('the secret of the OpenID client comes from its variable or from its file; both stop the start, and both are named', () => {
  const base = {
    ANNALS_BASE_URL: 'https://annals.example',
    ANNALS_OIDC_ISSUER: 'https://login.example',
    ANNALS_OIDC_CLIENT_ID: 'annals',
    ANNALS_OIDC_RULES: 'rules.json',
  };
  // Any file that has a text.
  const byFile = { ANNALS_OIDC_CLIENT_SECRET_FILE: import.meta.filename };
  const byText = { ANNALS_OIDC_CLIENT_SECRET: 'secret of the text' };
  expect(readConfig({ ...base, ...byText }).oidc).toMatchObject({ clientSecret: 'secret of the text', scopes: [] });
  const scoped = (ANNALS_OIDC_SCOPE: string) => ({ ...base, ...byText, ANNALS_OIDC_SCOPE });
  expect(readConfig(scoped(' groups  offline_access ')).oidc?.scopes).toEqual(['groups', 'offline_access']);
  expect(faultsOf(scoped('a "b"')).faults).toEqual([expect.stringMatching(/^ANNALS_OIDC_SCOPE must be scopes/)]);
  expect(readConfig({ ...base, ...byFile }).oidc?.clientSecret).toContain('Any file that has a text');
  const { faults } = faultsOf({ ...base, ...byText, ...byFile });
  expect(faults).toEqual([
    'ANNALS_OIDC_CLIENT_SECRET and ANNALS_OIDC_CLIENT_SECRET_FILE are both set: unset one, since they may differ',
  ]);
});
