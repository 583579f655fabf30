import { onTestFinished } from 'vitest';
import { parseAllowedAddresses } from '../../../src/core/config/addresses.ts';
import { createGuardedHttp, type GuardedHttp } from '../../../src/delivery/targets/guarded-http.ts';

/** As a service sends whose operator allows the tenant `shop` the addresses of this machine. */
export function localHttp(): GuardedHttp {
  const allowed = parseAllowedAddresses('127.0.0.0/8');
  if (!Array.isArray(allowed)) throw new Error('no address');
  const http = createGuardedHttp({ allowed: new Map([['shop', allowed]]) });
  onTestFinished(() => http.close());
  return http;
}
