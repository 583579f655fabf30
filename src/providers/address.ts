import { isIPv4, isIPv6 } from 'node:net';

/** An IP address as a number. An IPv6 form that wraps an IPv4 address counts as that IPv4 address. */
export interface IpAddress {
  readonly family: 4 | 6;
  readonly bits: bigint;
}

/** Returns undefined where the text is not an address. A zone (`fe80::1%eth0`) names a link and is ignored. */
export function parseAddress(text: string): IpAddress | undefined {
  const [plain = ''] = text.split('%');
  if (isIPv4(plain)) return { family: 4, bits: bitsOfIPv4(plain) };
  if (!isIPv6(plain)) return undefined;
  const bits = bitsOfIPv6(plain);
  // ::ffff:0:0/96, IPv4-mapped (RFC 4291, 2.5.5.2).
  return bits >> 32n === 0xffffn ? { family: 4, bits: bits & 0xffffffffn } : { family: 6, bits };
}

export function isWithin({ family, bits }: IpAddress, range: IpAddress, prefix: number): boolean {
  if (family !== range.family) return false;
  const rest = BigInt((family === 4 ? 32 : 128) - prefix);
  return bits >> rest === range.bits >> rest;
}

/**
 * Whether the address belongs to the public internet. Private, loopback, link-local, multicast, documentation and other
 * special addresses do not (IANA's registries of special-purpose addresses), nor does a tunnel into such a range.
 */
export function isPublic(address: IpAddress): boolean {
  if (address.family === 4) return !special.some(([range, prefix]) => isWithin(address, range, prefix));
  // 64:ff9b::/96, the well-known prefix of NAT64 (RFC 6052), leads to the IPv4 address in its last 32 bits.
  if (isWithin(address, nat64, 96)) return isPublic({ family: 4, bits: address.bits & 0xffffffffn });
  // Nothing outside of 2000::/3 is global unicast.
  return isWithin(address, globalUnicast, 3) && !special.some(([range, prefix]) => isWithin(address, range, prefix));
}

function bitsOfIPv4(text: string): bigint {
  return text.split('.').reduce((bits, byte) => (bits << 8n) | BigInt(byte), 0n);
}

function bitsOfIPv6(text: string): bigint {
  // For an address that Node accepts, the URL parser writes only hexadecimal groups.
  const canonical = new URL(`http://[${text}]`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  const before = groupsOf(head);
  const after = groupsOf(tail ?? '');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0n);
  return [...before, ...zeros, ...after].reduce((bits, group) => (bits << 16n) | group, 0n);
}

function groupsOf(text: string): bigint[] {
  return text === '' ? [] : text.split(':').map((group) => BigInt(`0x${group}`));
}

function parseRange(text: string): [IpAddress, number] {
  const [address = '', prefix] = text.split('/');
  const parsed = parseAddress(address);
  if (parsed === undefined) throw new Error(`${text} is no range`);
  return [parsed, Number(prefix)];
}

const [nat64] = parseRange('64:ff9b::/96');
const [globalUnicast] = parseRange('2000::/3');

const special = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Teredo, ORCHID and other protocols; 6to4, which may wrap any IPv4 address; documentation; AS112.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
].map(parseRange);
