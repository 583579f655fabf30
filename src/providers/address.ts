import { BlockList, isIP, isIPv4 } from 'node:net';

/**
 * Whether the text is an address of the public internet: not private, loopback, link-local, multicast, documentation or
 * otherwise special (IANA's special-purpose registries), and not a tunnel into such a range.
 */
export function isPublic(address: string): boolean {
  return contains(reachable, address) && !contains(special, address);
}

/** Whether two IP addresses share a prefix of so many bits. An IPv4-mapped IPv6 address counts as its IPv4 address. */
export function isWithin(address: string, range: string, prefix: number): boolean {
  return contains(wrapped, address) === contains(wrapped, range) && contains(listOf(`${range}/${prefix}`), address);
}

/** A list matches an IPv4 address in either form. A zone (`fe80::1%eth0`) is ignored. */
function contains(list: BlockList, address: string): boolean {
  const [plain = ''] = address.split('%');
  return isIP(plain) !== 0 && list.check(plain, familyOf(plain));
}

function listOf(...ranges: string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [, address = '', prefix] = /^([^%/]+)[^/]*\/(\d+)$/.exec(range) ?? [];
    list.addSubnet(address, Number(prefix), familyOf(address));
  }
  return list;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv4(address) ? 'ipv4' : 'ipv6';
}

// ::ffff:0:0/96, IPv4-mapped (RFC 4291, 2.5.5.2).
const wrapped = listOf('::ffff:0:0/96');
// 64:ff9b::/96, NAT64's well-known prefix (RFC 6052), maps to the IPv4 address in its last 32 bits. Otherwise only
// 2000::/3 is global unicast.
const reachable = listOf('::ffff:0:0/96', '64:ff9b::/96', '2000::/3');

const specialIPv4 = [
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
];
const special = listOf(
  ...specialIPv4,
  ...specialIPv4.map((range) =>
    range.replace(/^(.+)\/(\d+)$/, (_, ip, prefix) => `64:ff9b::${ip}/${96 + Number(prefix)}`),
  ),
  // Teredo, ORCHID and other protocols; 6to4, which may wrap any IPv4 address; documentation; AS112.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
);
