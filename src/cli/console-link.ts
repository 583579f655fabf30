import { noteAccess } from '../access/accesses/store.ts';
import { type ClientDescription, createClientWithoutSecret } from '../access/oauth/clients.ts';
import { createLink } from '../access/sessions/links.ts';
import type { Database } from '../postgres/database.ts';
import { inTransaction } from '../postgres/transaction.ts';

export interface ConsoleLink {
  clientId: string;
  name: string;
  /** Space-separated. */
  scope: string;
  /** The fragment of the link's address. */
  fragment: string;
}

/** Creates a client and a link that signs it in to the console once, within `lifetime` milliseconds. */
export async function makeConsoleLink(db: Database, client: ClientDescription, lifetime: number): Promise<ConsoleLink> {
  return await inTransaction(db, async (transaction) => {
    const { tenant, clientId, name, scope } = await createClientWithoutSecret(transaction, client);
    await noteAccess(transaction, { tenant, kind: 'link_made', clientId, details: { scope } });
    return { clientId, name, scope, fragment: await createLink(transaction, { tenant, clientId, lifetime }) };
  });
}

/** The address of a link. */
export function consoleAddress(baseUrl: string, { fragment }: ConsoleLink): string {
  return `${baseUrl}/console/#${fragment}`;
}
