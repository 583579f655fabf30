import type { DatabaseTransaction } from '../postgres/database.ts';
import { insertLink } from './link-store.ts';
import { hashSecret, newSecret, writeSecret } from './secret.ts';

/** Milliseconds (contract 13). */
export const linkLifetime = 60_000;

/**
 * Makes a link into the console for a client without a secret, and returns what stands behind the `#` of its address. The
 * caller makes the client in the same transaction.
 *
 * @example
 * const fragment = await createLink(transaction, { tenant, clientId, lifetime: linkLifetime }); // link=acme.3q2-7w…
 */
export async function createLink(
  transaction: DatabaseTransaction,
  { tenant, clientId, lifetime }: { tenant: string; clientId: string; lifetime: number },
): Promise<string> {
  const secret = newSecret(tenant);
  await insertLink(transaction, { tenant, secretHash: hashSecret(secret), clientId }, lifetime);
  return `link=${writeSecret(secret)}`;
}
