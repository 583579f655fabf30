import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** The bytes of a backup's first and last description. The last one has the SHA-256 of each table. */
export interface Descriptions {
  begin: Uint8Array;
  manifest: Uint8Array;
}

/** What confirms a backup to whoever has the secret key, in hexadecimal. */
export function authenticate(secretKey: Uint8Array, { begin, manifest }: Descriptions): string {
  const key = createHmac('sha256', secretKey).update('annals backup authentication').digest();
  const sum = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();
  return createHmac('sha256', key).update(sum(begin)).update(sum(manifest)).digest('hex');
}

/** Whether one of the keys confirms it. */
export function isAuthentic(secretKeys: readonly Uint8Array[], descriptions: Descriptions, told: string): boolean {
  const given = Buffer.from(told);
  return secretKeys.some((key) => {
    const own = Buffer.from(authenticate(key, descriptions));
    return own.length === given.length && timingSafeEqual(own, given);
  });
}
