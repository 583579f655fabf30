import type { TestServer } from './server.ts';

/** The body of a completion, as short as it can be. */
export const hello = { messages: [{ role: 'USER', content: 'Hello' }] };

/** The operations for one model call each, with a body that asks a text; `model`: for those that need one. */
export const modelOperations: readonly ((
  tenant: string,
  text: string,
  model: string,
) => readonly [path: string, body: object])[] = [
  (tenant, content) => [`/ai-service/${tenant}/completions`, { messages: [{ role: 'user', content }] }],
  (tenant, content, model) => [
    `/openai/${tenant}/v1/chat/completions`,
    { model, messages: [{ role: 'user', content }] },
  ],
  (tenant, input, model) => [`/openai/${tenant}/v1/responses`, { model, input }],
];

let tenants = 0;

/** Makes a tenant that no other test of the file has, and gives its name. */
export async function newTenant(server: TestServer): Promise<string> {
  tenants += 1;
  const tenant = `tenant${tenants}`;
  await server.createTenant(tenant);
  return tenant;
}

/** Asks for a completion, as a client of the tenant with all scopes. */
export async function postCompletion(server: TestServer, tenant: string, body: unknown = hello): Promise<Response> {
  return await server.call(`/ai-service/${tenant}/completions`, { token: await server.token(tenant), json: body });
}

/** The status and the body of the answer to a completion. */
export async function complete(server: TestServer, tenant: string, body?: unknown) {
  const response = await postCompletion(server, tenant, body);
  return { status: response.status, body: await response.json() };
}

/** What the tenant has used, reserved and left of its quota. */
export async function usageOf(server: TestServer, tenant: string) {
  const token = await server.token(tenant, { scope: 'ai.completion_manage' });
  return await (await server.call(`/ai-service/${tenant}/completions/usage`, { token })).json();
}

/** Stores a token of the tenant's own for the provider of this item. */
export async function setProviderToken(
  server: TestServer,
  tenant: string,
  token: string,
  key = 'providerApiToken',
): Promise<void> {
  const item = {
    key,
    value: token,
    json: JSON.stringify(token),
    size: { bytes: token.length, values: 1, levels: 0 },
  };
  await server.context.configuration.create({ tenant, actor: 'test' }, [item]);
}
