import { randomBytes } from 'node:crypto';
import { createClient } from '../../src/access/oauth/clients.ts';
import { scopes } from '../../src/http/scopes.ts';
import type { Database } from '../../src/postgres/database.ts';
import { createTenant } from '../../src/postgres/tenants/tenants.ts';
import { type Acknowledged, type Caller, Session } from './clients.ts';

/** Makes a tenant with a client, a custom entity type and an agent. The tenant's name begins with `prefix`. */
export async function prepareTenant(
  db: Database,
  prefix: string,
  connection: Omit<Caller, 'tenant' | 'basic'>,
): Promise<{ caller: Caller; session: Session; acknowledged: Acknowledged }> {
  const tenant = `${prefix}${randomBytes(3).toString('hex')}`;
  await createTenant(db, tenant);
  const client = await createClient(db, { tenant, scope: scopes.join(' '), name: 'Soak' });
  const basic = `Basic ${Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64')}`;
  const caller: Caller = { ...connection, tenant, basic };
  const session = new Session(caller);
  const put = (path: string, body: object) =>
    session.call('prepare', path, { method: 'PUT', body: JSON.stringify(body) });
  await put(`/schema/${tenant}/custom-entities/BOX`, { name: { en: 'Box' } });
  await put(`/ai-service/${tenant}/agentic/agents/desk`, {
    name: { en: 'Desk' },
    llmConfig: { provider: 'openai', model: 'gpt-5.4-mini', apiKey: 'sk-soak' },
  });
  const acknowledged = { changes: [], writes: 0, unknownWrites: 0, chats: 0, unknownChats: 0, exports: 0 };
  return { caller, session, acknowledged };
}
