import type { AllowedAddress } from '../core/config/addresses.ts';
import { guardedLookup } from './guarded-lookup.ts';
import { createTransport, type Transport } from './transport.ts';

/** Milliseconds. An address that does not answer must look the same as one that refuses the connection. */
const connectTimeout = 10_000;

/**
 * The transport to servers that tenants name (contract 8). It connects only to public addresses and to addresses that
 * the operator allows. It refuses a name if it refuses any of the name's addresses. It connects to the same address
 * that it has checked.
 */
export function createSelfHostedTransport(allowed: readonly AllowedAddress[]): Transport {
  return createTransport({ guard: (url) => guardedLookup(url, { allowed }), connectTimeout });
}
