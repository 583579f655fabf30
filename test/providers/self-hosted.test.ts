import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/core/config/config.ts';
import { guardedLookup, isPublic, isWithin } from '../../src/outbound/addresses.ts';
import { createSelfHostedClient } from '../../src/outbound/http-client.ts';
import { createLanguageModels } from '../../src/providers/language-models.ts';
import { ProviderError } from '../../src/providers/port.ts';
import { createTransport } from '../../src/providers/transport.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { startVendor } from '../support/vendor/vendor-server.ts';

const vendor = closeAfterAll(await startVendor());
const port = Number(new URL(vendor.baseUrl).port);

/** The outcome of a call: `ok`, or the fault. */
async function call(baseUrl: string, allow = ''): Promise<string> {
  const { selfHostedAllow } = readConfig({ ANNALS_SELF_HOSTED_ALLOW: allow });
  const transports = {
    vendors: createTransport(),
    selfHosted: createTransport(createSelfHostedClient(selfHostedAllow)),
  };
  const models = createLanguageModels({ baseUrls: {}, transports });
  const messages = [{ role: 'user' as const, content: 'x' }];
  try {
    const options = {
      provider: 'self_hosted' as const,
      model: 'm',
      apiKey: '',
      maxTokens: 5,
      times: { silence: 5_000, total: 600_000 },
    };
    await models.call({ ...options, baseUrl, messages });
    return 'ok';
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return `${error.fault} ${JSON.stringify(error.usage)}`;
  } finally {
    transports.vendors.close();
    transports.selfHosted.close();
  }
}

test.each([
  '127.0.0.1',
  '127.1',
  '0x7f.1',
  '2130706433',
  '017700000001',
  '0.0.0.0',
  'localhost',
  'LOCALHOST.',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[64:ff9b::7f00:1]',
  '[::127.0.0.1]',
  '10.0.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '[fe80::1]',
  '[fd00:ec2::254]',
])('%s is refused before any connection', async (host) => {
  const before = vendor.requests.length;
  expect(await call(`http://${host}:${port}/v1`)).toBe('unreachable "none"');
  expect(vendor.requests.length).toBe(before);
});

test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['127.0.0.1', '127.0.0.0/8'],
  ['localhost', '127.0.0.0/8,::1'],
  ['127.0.0.1', 'PORT'],
  ['localhost', 'localhost:PORT'],
  ['localhost', '127.0.0.1:PORT,[::1]:PORT'],
  ['[::ffff:127.0.0.1]', '127.0.0.1'],
  ['127.0.0.1', '::ffff:127.0.0.0/104'],
])('%s is called where %s is allowed', async (host, allow) => {
  const allowed = allow === 'PORT' ? `127.0.0.1:${port}` : allow.replaceAll('PORT', String(port));
  expect(await call(`http://${host}:${port}`, allowed)).toBe('ok');
});

test.each(['10.0.0.0/8', '127.0.0.2', '127.0.0.1:1', 'localhost:1'])('%s allows nothing else', async (allow) => {
  expect(await call(`http://127.0.0.1:${port}`, allow)).toBe('unreachable "none"');
  expect(await call(`http://localhost:${port}`, allow)).toBe('unreachable "none"');
});

test('no redirect is followed, to wherever it leads', async () => {
  const redirecting = await listening(
    createServer((_request, response) => {
      response.writeHead(307, { location: `${vendor.baseUrl}/v1/chat/completions` }).end();
    }),
  );
  const before = vendor.requests.length;
  expect(await call(`http://127.0.0.1:${portOf(redirecting)}`, '127.0.0.1')).toContain('unavailable');
  expect(vendor.requests.length).toBe(before);
  redirecting.close();
});

test('the address that was checked is the one connected to, of all that a name has', async () => {
  const { selfHostedAllow } = readConfig({ ANNALS_SELF_HOSTED_ALLOW: '127.0.0.0/8,::1' });
  const lookup = guardedLookup(new URL('http://localhost:80'), { allowed: selfHostedAllow });
  const seen = await new Promise((resolve) => lookup('localhost', { all: true }, (_error, found) => resolve(found)));
  const single = await new Promise((resolve) => lookup('localhost', {}, (_error, found) => resolve(found)));
  expect(seen).toContainEqual({ address: single, family: expect.any(Number) });
  // One forbidden address among them is enough.
  const half = guardedLookup(new URL('http://localhost:80'), { allowed: [] });
  const refused = await new Promise((resolve) => half('localhost', { all: true }, (error) => resolve(error?.message)));
  expect(refused).toBe('the address is refused');
});

test.each([
  ['8.8.8.8', true],
  ['1.1.1.1', true],
  ['172.15.255.255', true],
  ['172.16.0.0', false],
  ['172.32.0.0', true],
  ['100.63.255.255', true],
  ['100.64.0.0', false],
  ['100.127.255.255', false],
  ['169.253.255.255', true],
  ['169.254.0.0', false],
  ['192.0.0.8', false],
  ['192.0.2.1', false],
  ['198.18.0.1', false],
  ['198.20.0.1', true],
  ['198.51.100.7', false],
  ['203.0.113.7', false],
  ['223.255.255.255', true],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['0.1.2.3', false],
  ['2606:4700::1111', true],
  ['2001:4860:4860::8888', true],
  ['::', false],
  ['::1', false],
  ['::ffff:8.8.8.8', true],
  ['::ffff:10.0.0.1', false],
  ['::8.8.8.8', false],
  ['64:ff9b::8.8.8.8', true],
  ['64:ff9b::10.0.0.1', false],
  ['64:ff9b:1::8.8.8.8', false],
  ['100::1', false],
  ['2001::1', false],
  ['2001:db8::1', false],
  ['2002:0a00:0001::', false],
  ['2002:0808:0808::', false],
  ['3fff::1', false],
  ['4000::1', false],
  ['fc00::1', false],
  ['fdff::1', false],
  ['fe80::1%eth0', false],
  ['fec0::1', false],
  ['ff02::1', false],
])('%s is an address of the public internet: %s', (text, expected) => {
  expect(isPublic(text)).toBe(expected);
});

test('what is no address is none of the public internet, and within no range', () => {
  for (const text of ['', 'localhost', '1.2.3', '1.2.3.4.5', '::1::', '127.0.0.1:80']) {
    expect(isPublic(text)).toBe(false);
    expect(isWithin(text, '0.0.0.0', 0) || isWithin(text, '::', 0)).toBe(false);
  }
});

test.each([
  ['10.1.2.3', '10.0.0.0', 8, true],
  ['11.1.2.3', '10.0.0.0', 8, false],
  ['::ffff:10.1.2.3', '10.0.0.0', 8, true],
  ['::ffff:a01:203', '10.0.0.0', 8, true],
  ['10.1.2.3', '::ffff:10.0.0.0', 104, true],
  ['11.1.2.3', '::ffff:10.0.0.0', 104, false],
  ['10.1.2.3', '::ffff:0:0', 90, true],
  ['10.1.2.3', '::', 0, false],
  ['::ffff:10.1.2.3', '::', 0, false],
  ['::1', '0.0.0.0', 0, false],
  ['::1', '::', 0, true],
  ['fe80::1%eth0', 'fe80::', 10, true],
  ['fe80::1', 'fe80::%eth0', 10, true],
])('%s is within %s/%i: %s', (address, range, prefix, expected) => {
  expect(isWithin(address, range, prefix)).toBe(expected);
});

async function listening(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
