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
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  const accepts = (address: string) => mayBeCalled(address, { host, port }, options);
  // Node connects to a literal address without a lookup.
  if (isIP(host) !== 0 && !accepts(host)) throw new Error('the address is refused');

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
