import type { AllowedAddress } from '../core/config/addresses.ts';
import { guardedLookup } from './guarded-lookup.ts';
import { createHttpConnections, type HttpConnections } from './http-connections.ts';

/** Milliseconds. An address that does not answer must look the same as one that refuses the connection. */
const connectTimeout = 10_000;

/**
 * Connections to servers that tenants name (contract 8): to public addresses and to addresses that the operator allows. A name is
 * refused if any of its addresses is. The connection is made to the same address that was checked.
 */
export function createSelfHostedConnections(allowed: readonly AllowedAddress[]): HttpConnections {
  return createHttpConnections({ guard: (url) => guardedLookup(url, { allowed }), connectTimeout });
}
