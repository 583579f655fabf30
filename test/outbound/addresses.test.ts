import type { LookupAddress } from 'node:dns';
import { expect, test } from 'vitest';
import { guardedLookup } from '../../src/outbound/addresses.ts';

// No resolver of a test machine answers a name with a public and a private address.
const names: Record<string, LookupAddress[]> = {
  'public.example': [
    { address: '93.184.215.14', family: 4 },
    { address: '2606:2800:21f:cb07:6820:80da:af6b:8b2c', family: 6 },
  ],
  'mixed.example': [
    { address: '93.184.215.14', family: 4 },
    { address: '10.0.0.1', family: 4 },
  ],
  'private.example': [{ address: '10.0.0.1', family: 4 }],
};

test.each([
  ['public.example', [], 'connects'],
  ['mixed.example', [], 'refuses'],
  ['private.example', [], 'refuses'],
  ['mixed.example', [{ kind: 'range', address: '10.0.0.0', prefix: 8 }], 'connects'],
] as const)('for the name %s, with %j allowed, it %s', (name, allowed, outcome) => {
  const seen: unknown[] = [];
  const lookup = guardedLookup(new URL(`https://${name}/v1`), {
    allowed: [...allowed],
    resolve: (host, _options, callback) => callback(null, names[host] ?? []),
  });
  lookup(name, {}, (error, address) => seen.push(error === null ? address : error.message));
  expect(seen).toEqual([outcome === 'connects' ? '93.184.215.14' : 'the address is refused']);
});
