import { type LookupAddress, type LookupAllOptions, lookup as lookUp } from 'node:dns';
import { isIP, isIPv4, type LookupFunction } from 'node:net';
import type { AllowedAddress } from '../core/config/addresses.ts';
import { isPublic, isWithin } from './address.ts';

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
