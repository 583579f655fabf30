import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { AnnalsError } from '../../core/errors.ts';

const clientIdPattern = /^([a-z][a-z0-9]{1,62})\.[0-9a-f]{20}$/;

/** `<tenant>.<random>`: contains the tenant, because every lookup names one. */
export function newClientId(tenant: string): string {
  return `${tenant}.${randomBytes(10).toString('hex')}`;
}

/** The tenant of a client id; undefined if malformed. */
export function tenantOfClientId(clientId: string): string | undefined {
  return clientIdPattern.exec(clientId)?.[1];
}

/** 32 random bytes, base64url. */
export function newClientSecret(): string {
  return randomBytes(32).toString('base64url');
}

/**
 * The SHA-256 of a secret. With 256 random bits it needs no slow password hash, which would let strangers load the
 * processor.
 */
export function hashClientSecret(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}

/** No secret matches a client without one. */
export function secretMatches(secret: string, secretHash: Uint8Array | null): boolean {
  return secretHash !== null && timingSafeEqual(hashClientSecret(secret), secretHash);
}

const maxName = 200;
// The actors of change entries without a client (spec A, change entry).
const reservedNames: ReadonlySet<string> = new Set(['system', 'external', 'unknown']);

/** Throws validation_violation unless the name can be the actor of change entries (contract 1). */
export function checkClientName(name: string): void {
  const fault = faultOfName(name);
  if (fault === undefined) return;
  throw new AnnalsError('validation_violation', `The client's name ${fault}.`, {
    details: [{ field: 'name', message: fault }],
  });
}

function faultOfName(name: string): string | undefined {
  const seen = name.replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '').trim();
  if (seen === '') return 'must not be empty';
  if ([...name].length > maxName) return `must not have more than ${maxName} characters`;
  if (/\p{Cc}/u.test(name)) return 'must not contain control characters';
  if (/\p{Bidi_Control}/u.test(name)) return 'must not contain characters that turn the direction of a text';
  if (!name.isWellFormed()) return 'must not contain lone surrogates';
  if (reservedNames.has(seen)) return 'must not be system, external or unknown';
  return undefined;
}
