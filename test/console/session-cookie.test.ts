import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSessionCookie, newSecret } from '../../src/access/sessions/sealed-cookie.ts';
import { createSealer } from '../../src/core/sealing.ts';

const sealer = createSealer([randomBytes(32)]);
const installation = '3f0c2a52-7f9b-4f57-9f0e-2d3c1c6c2a11';

function cookieOf({ isOverTls = false, basePath = '' } = {}) {
  return createSessionCookie({ sealer, installation, isOverTls, basePath });
}

test.each([
  [true, '', `__Host-annals-${installation}`, 'Path=/; HttpOnly; SameSite=Strict; Secure'],
  [true, '/x', `__Secure-annals-${installation}`, 'Path=/x/console/api; HttpOnly; SameSite=Strict; Secure'],
  [false, '', `annals-${installation}`, 'Path=/console/api; HttpOnly; SameSite=Strict'],
  [false, '/x', `annals-${installation}`, 'Path=/x/console/api; HttpOnly; SameSite=Strict'],
])('over TLS %s, under "%s": %s', (isOverTls, basePath, name, attributes) => {
  const cookie = cookieOf({ isOverTls, basePath });
  const secret = newSecret('acme');
  const [pair = '', maxAge, ...rest] = cookie.write(secret, 8 * 3_600_000).split('; ');
  expect(pair).toMatch(new RegExp(`^${name}=[\\w-]+$`));
  expect([maxAge, rest.join('; ')]).toEqual(['Max-Age=28800', attributes]);
  expect(pair).not.toContain(secret.text);
  expect(cookie.clear).toBe(`${name}=; Max-Age=0; ${attributes}`);
  expect(cookie.read(`a=b; ${pair};c=d`)).toEqual(secret);
});

test('a value that was changed, made up, of another key or of another name is none', () => {
  const cookie = cookieOf();
  const [pair = ''] = cookie.write(newSecret('acme'), 1_000).split(';');
  const [name = '', value = ''] = pair.split('=');
  expect(cookie.read(pair)).toBeDefined();
  const wrong = [
    undefined,
    '',
    name,
    `${name}=`,
    `${name}=acme.${'a'.repeat(43)}`,
    `${name}=${value.slice(0, -2)}`,
    `${name}=${value.startsWith('A') ? 'B' : 'A'}${value.slice(1)}`,
    `${name}=${value}${'A'.repeat(1_000)}`,
    `x${pair}`,
    `__Host-${pair}`,
    `${name.toUpperCase()}=${value}`,
  ];
  for (const header of wrong) expect(cookie.read(header), header).toBeUndefined();
  const withOtherKey = createSessionCookie({
    sealer: createSealer([randomBytes(32)]),
    installation,
    isOverTls: false,
    basePath: '',
  });
  expect(withOtherKey.read(pair)).toBeUndefined();
  const ofOtherPurpose = Buffer.from(sealer.seal(Buffer.from(`acme.${'a'.repeat(43)}`), 'other'));
  expect(cookie.read(`${name}=${ofOtherPurpose.toString('base64url')}`)).toBeUndefined();
});

test('two of the name are none: a page of the host has set one of them', () => {
  const cookie = cookieOf();
  const [own = ''] = cookie.write(newSecret('acme'), 1_000).split(';');
  const [planted = ''] = cookie.write(newSecret('evil'), 1_000).split(';');
  expect(cookie.read(`${own}; ${planted}`)).toBeUndefined();
  expect(cookie.read(`${planted}; ${own}`)).toBeUndefined();
});
