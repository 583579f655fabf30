import { expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../src/core/config/config.ts';
import { startTestServer } from '../support/server/server.ts';

const year = 'max-age=31536000';
const below = { ANNALS_BASE_URL: 'https://shop.example/annals' };

test.each<[string, Record<string, string>, string | null]>([
  ['covers the host alone by default', {}, year],
  ['covers the host alone with a public address of its own', { ANNALS_BASE_URL: 'https://annals.example' }, year],
  ['is not sent below a path: the host is of others too', below, null],
  ['below a path covers the host where that is set', { ...below, ANNALS_HSTS: 'host' }, year],
  ['covers subdomains where that is set', { ANNALS_HSTS: 'subdomains' }, `${year}; includeSubDomains`],
  ['is off where that is set', { ANNALS_HSTS: 'off' }, null],
])('Strict-Transport-Security %s', async (_what, environment, expected) => {
  const server = await startTestServer({ environment });
  try {
    for (const path of ['/health/live', '/nothing', '/docs', '/console']) {
      const { headers } = await server.call(path);
      expect([path, headers.get('strict-transport-security')]).toEqual([path, expected]);
    }
  } finally {
    await server.close();
  }
});

test('another value of ANNALS_HSTS is a fault', () => {
  expect(() => readConfig({ ANNALS_HSTS: 'on' })).toThrow(ConfigError);
  expect(() => readConfig({ ANNALS_HSTS: 'on' })).toThrow('ANNALS_HSTS must be one of off, host, subdomains');
});
