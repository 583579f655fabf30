import { type LookupAddress, type LookupAllOptions, lookup as lookUp } from 'node:dns';
import { BlockList, isIP, isIPv4, type LookupFunction } from 'node:net';
import type { AllowedAddress } from '../core/config/addresses.ts';

/** Finds all addresses of a name. */
export type ResolveAll = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export interface GuardOptions {
  /** Addresses accepted in addition to public ones. */
  readonly allowed: readonly AllowedAddress[];
  /** Whether public addresses are refused unless allowed. */
  readonly refusesPublic?: boolean;
  /** Default: the machine's resolver. */
  readonly resolve?: ResolveAll | undefined;
}

/**
 * The lookup function for connections to servers that tenants name. Refuses a name if any of its addresses is refused,
 * so that the connection goes to a checked address. Throws if the URL itself contains a refused address.
 */
export function guardedLookup(url: URL, options: GuardOptions): LookupFunction {
  const { resolve = (name, lookupOptions, callback) => lookUp(name, lookupOptions, callback) } = options;
  const accepts = (address: string) => mayBeCalled(address, endpointOf(url), options);
  // Node connects to a literal address without a lookup.
  if (isRefusedAddress(url, options)) throw new Error('the address is refused');

  return (hostname, lookupOptions, callback) => {
    resolve(hostname, { ...lookupOptions, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null || first === undefined) callback(error ?? new Error('no address'), '', 4);
      else if (!addresses.every(({ address }) => accepts(address))) {
        callback(new Error('the address is refused'), '', 4);
      } else if (lookupOptions.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

/** The fault of a refused URL. */
export const refusedAddress =
  'must not be a private, loopback, link-local or other special address that the operator has not allowed';

/** Whether the URL contains a refused IP address instead of a name. */
export function isRefusedAddress(url: URL, options: Omit<GuardOptions, 'resolve'>): boolean {
  const { host, port } = endpointOf(url);
  return isIP(host) !== 0 && !mayBeCalled(host, { host, port }, options);
}

function endpointOf({ hostname, port, protocol }: URL): { host: string; port: number } {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  return { host, port: Number(port) || (protocol === 'https:' ? 443 : 80) };
}

function mayBeCalled(
  address: string,
  { host, port }: { host: string; port: number },
  { allowed, refusesPublic = false }: GuardOptions,
): boolean {
  const isAllowed = (entry: AllowedAddress) =>
    entry.kind === 'range'
      ? isWithin(address, entry.address, entry.prefix)
      : entry.port === port && (entry.host === host || isSame(address, entry.host));
  return (!refusesPublic && isPublic(address)) || allowed.some(isAllowed);
}

function isSame(address: string, host: string): boolean {
  return isIP(host) !== 0 && isWithin(address, host, isIPv4(host) ? 32 : 128);
}

/** The address of a self-hosted server: http or https, without user, query and fragment. */
export const serverAddressPattern = '^[Hh][Tt][Tt][Pp][Ss]?://[^\\s/?#@\\\\]+(/[^\\s?#]*)?$';
export const maxServerAddress = 2_048;

const serverAddress = new RegExp(serverAddressPattern);

export function isServerAddress(value: unknown): value is string {
  return (
    typeof value === 'string' && value.length <= maxServerAddress && serverAddress.test(value) && URL.canParse(value)
  );
}

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
