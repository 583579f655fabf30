import type { AllowedAddress } from '../core/config/addresses.ts';
import { guardedLookup } from './guarded-lookup.ts';
import { createHttpConnections, type HttpConnections } from './http-connections.ts';

/** Milliseconds. A silent address must be indistinguishable from one that refuses the connection. */
const connectTimeout = 10_000;

/**
 * Connections to servers that tenants name (contract 8): to public addresses, and to those that the operator allows. A
 * name is refused if any of its addresses is, and the connection goes to a checked address.
 */
export function createSelfHostedConnections(allowed: readonly AllowedAddress[]): HttpConnections {
  return createHttpConnections({ guard: (url) => guardedLookup(url, { allowed }), connectTimeout });
}
