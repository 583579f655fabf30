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
  /** Addresses that are accepted besides public ones. */
  readonly allowed: readonly AllowedAddress[];
  /** Whether a public address is refused if it is not allowed. */
  readonly refusesPublic?: boolean;
  /** Default: the machine's resolver. */
  readonly resolve?: ResolveAll | undefined;
}

/**
 * The lookup function for a connection to a server that a tenant names. It refuses a name if it refuses any of the name's addresses,
 * and the connection is made to the address that it has checked. Throws for a refused address in the URL itself.
 */
export function guardedLookup(url: URL, options: GuardOptions): LookupFunction {
  const { resolve = (name, wanted, callback) => lookUp(name, wanted, callback) } = options;
  const accepts = (address: string) => mayBeCalled(address, endpointOf(url), options);
  // Node connects to a literal address without a lookup.
  if (isRefusedAddress(url, options)) throw new Error('the address is refused');

  return (hostname, wanted, callback) => {
    resolve(hostname, { ...wanted, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null || first === undefined) callback(error ?? new Error('no address'), '', 4);
      else if (!addresses.every(({ address }) => accepts(address))) {
        callback(new Error('the address is refused'), '', 4);
      } else if (wanted.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

/** What is wrong with such a URL. */
export const refusedAddress =
  'must not be a private, loopback, link-local or other special address that the operator has not allowed';

/** Whether the URL has an IP address in place of a name, and a connection to that is refused. */
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
  const isAllowed = (one: AllowedAddress) =>
    one.kind === 'range'
      ? isWithin(address, one.address, one.prefix)
      : one.port === port && (one.host === host || isSame(address, one.host));
  return (!refusesPublic && isPublic(address)) || allowed.some(isAllowed);
}

function isSame(address: string, host: string): boolean {
  return isIP(host) !== 0 && isWithin(address, host, isIPv4(host) ? 32 : 128);
}
