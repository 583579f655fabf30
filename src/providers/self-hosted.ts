import { type LookupAddress, type LookupAllOptions, lookup as lookUp } from 'node:dns';
import { isIP, isIPv4, type LookupFunction } from 'node:net';
import type { AllowedAddress } from '../core/config/addresses.ts';
import { isPublic, isWithin } from './address.ts';
import { createTransport, type Transport } from './transport.ts';

/** Milliseconds. An address that does not answer must look the same as one that refuses the connection. */
const connectTimeout = 10_000;

/** Finds all addresses of a name. */
type ResolveAll = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * The transport to servers that tenants name (contract 8). It connects only to public addresses and to addresses that
 * the operator allows. It refuses a name if it refuses any of the name's addresses. It connects to the same address
 * that it has checked.
 */
export function createSelfHostedTransport(allowed: readonly AllowedAddress[]): Transport {
  return createTransport({ guard: (url) => guardedLookup(url, allowed), connectTimeout });
}

/** Throws for a refused address. Names are checked when they are looked up, with `resolve`: left out, the machine's resolver. */
export function guardedLookup(
  url: URL,
  allowed: readonly AllowedAddress[],
  resolve: ResolveAll = (name, options, callback) => lookUp(name, options, callback),
): LookupFunction {
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  const accepts = (address: string) => mayBeCalled(address, { host, port }, allowed);
  // Node connects to a literal address without a lookup.
  if (isIP(host) !== 0 && !accepts(host)) throw new Error('the address is refused');

  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? [];
      if (error !== null || first === undefined) callback(error ?? new Error('no address'), '', 4);
      else if (!addresses.every(({ address }) => accepts(address))) {
        callback(new Error('the address is refused'), '', 4);
      } else if (options.all === true) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}

function mayBeCalled(
  address: string,
  { host, port }: { host: string; port: number },
  allowed: readonly AllowedAddress[],
): boolean {
  const isAllowed = (one: AllowedAddress) =>
    one.kind === 'range'
      ? isWithin(address, one.address, one.prefix)
      : one.port === port && (one.host === host || isSame(address, one.host));
  return isPublic(address) || allowed.some(isAllowed);
}

function isSame(address: string, host: string): boolean {
  return isIP(host) !== 0 && isWithin(address, host, isIPv4(host) ? 32 : 128);
}
