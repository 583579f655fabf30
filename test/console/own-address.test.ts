import { expect, test } from 'vitest';
import { createOwnAddress } from '../../src/access/sessions/own-address.ts';

interface Sent {
  method?: string;
  host: string;
  origin?: string;
  site?: string;
}

/** The status of the refusal; undefined: none. */
function refusal(baseUrl: string | undefined, { method = 'GET', host, origin, site }: Sent): number | undefined {
  const headers = {
    host,
    ...(origin === undefined ? {} : { origin }),
    ...(site === undefined ? {} : { 'sec-fetch-site': site }),
  };
  return createOwnAddress(baseUrl, false).faultOfOrigin({ method, headers })?.status;
}

test.each(['localhost:8080', 'localhost', 'LOCALHOST:1', '127.0.0.1:8080', '127.1.2.3:8080', '[::1]:8080'])(
  'without a public address, %s is ours',
  (host) => {
    expect(refusal(undefined, { host })).toBeUndefined();
  },
);

test.each([
  'evil.example',
  'evil.example:8080',
  'localhost.evil.example',
  '127.0.0.1.evil.example',
  '127.0.0.1x:80',
  'localhost.:8080',
  '192.168.1.2:8080',
  '[::2]:8080',
  '2130706433:8080',
  '0.0.0.0:8080',
  'user@localhost',
  'localhost:80:80',
  'localhost/',
  'evil.example, localhost',
  '',
])('without a public address, %j is another host: 421', (host) => {
  expect(refusal(undefined, { host })).toBe(421);
});

test.each([
  ['https://a.example', 'a.example', undefined],
  ['https://a.example', 'A.example:443', undefined],
  ['https://a.example', 'a.example:80', 421],
  ['https://a.example', 'b.example', 421],
  ['https://a.example', 'localhost:8080', 421],
  ['https://a.example:8443/x', 'a.example:8443', undefined],
  // A proxy may pass the name on without the port.
  ['https://a.example:8443/x', 'a.example', undefined],
  ['https://a.example:8443/x', 'a.example:443', 421],
])('of the public address %s, the host %s: %s', (baseUrl, host, status) => {
  expect(refusal(baseUrl, { host })).toBe(status);
});

test.each([
  ['POST', 'https://a.example', undefined, undefined],
  ['POST', 'https://a.example', 'same-origin', undefined],
  ['POST', 'https://a.example', 'cross-site', 403],
  ['POST', 'https://a.example', 'same-site', 403],
  ['POST', 'https://a.example', 'none', 403],
  ['POST', undefined, undefined, 403],
  ['POST', undefined, 'same-origin', 403],
  ['POST', 'null', undefined, 403],
  ['POST', 'http://a.example', undefined, 403],
  ['POST', 'https://a.example:444', undefined, 403],
  ['POST', 'https://a.example.evil.example', undefined, 403],
  ['POST', 'https://b.example', 'same-origin', 403],
  ['PUT', undefined, undefined, 403],
  ['PATCH', undefined, undefined, 403],
  ['DELETE', undefined, undefined, 403],
  ['OPTIONS', undefined, undefined, 403],
  ['GET', undefined, undefined, undefined],
  ['HEAD', undefined, undefined, undefined],
  ['GET', undefined, 'same-origin', undefined],
  ['GET', undefined, 'cross-site', 403],
  ['GET', undefined, 'none', 403],
  ['GET', 'https://b.example', undefined, 403],
])('%s from the origin %s, site %s: %s', (method, origin, site, status) => {
  const sent = { method, host: 'a.example', ...(origin && { origin }), ...(site && { site }) };
  expect(refusal('https://a.example/tools', sent)).toBe(status);
});

test('on this machine another port is another origin', () => {
  const host = 'localhost:8080';
  const post = (origin: string) => refusal(undefined, { method: 'POST', host, origin });
  expect(post('http://localhost:8080')).toBeUndefined();
  for (const origin of [
    'http://localhost:3000',
    'http://localhost',
    'http://127.0.0.1:8080',
    'https://localhost:8080',
  ]) {
    expect(post(origin), origin).toBe(403);
  }
});

test('people may sign in over TLS, on this machine, or where a setting allows it', () => {
  const allows = (baseUrl?: string, insecure = false) => createOwnAddress(baseUrl, insecure).allowsSignIn;
  expect(allows()).toBe(true);
  expect(allows('https://a.example')).toBe(true);
  expect(allows('http://127.0.0.1:8080')).toBe(true);
  expect(allows('http://a.example')).toBe(false);
  expect(allows('http://a.example', true)).toBe(true);
});
