import { expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { callAgentic, putAgent } from '../../support/server/agents.ts';
import { endOfJob, startExport } from '../../support/server/jobs.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { startVendor } from '../../support/vendor/vendor-server.ts';

const vendor = closeAfterAll(await startVendor());
const server = closeAfterAll(await startTestServer({ environment: { OPENAI_BASE_URL: vendor.baseUrl } }));

test('over HTTP: a bystander has its chat and its export at once, behind 20 chats that last and 10 exports of others', async () => {
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  vendor.behave(({ text }) => ({ kind: 'answer', ...(text.includes('bystander') ? {} : { after: over }) }));
  const [attacker, bystander] = ['attacker', 'bystander'];
  const tokens = new Map([attacker, bystander].map((tenant) => [tenant, server.token(tenant)]));
  const tokenOf = async (tenant: string) => (await tokens.get(tenant)) ?? '';
  const chat = async (tenant: string): Promise<string> => {
    const call = { tenant, token: await tokenOf(tenant), path: '/chat-async' };
    const response = await callAgentic(server, call, { agentId: 'desk', message: `of the ${tenant}` });
    expect(response.status).toBe(201);
    return ((await response.json()) as { jobId: string }).jobId;
  };
  const callOf = async (tenant: string) => {
    const token = await tokenOf(tenant);
    return (path: string, init?: RequestInit) => server.call(path, { ...init, token });
  };
  for (const tenant of [attacker, bystander])
    await putAgent(server, { tenant, token: await tokenOf(tenant), id: 'desk' });
  try {
    for (let count = 0; count < 20; count += 1) await chat(attacker);
    for (let count = 0; count < 10; count += 1) {
      await startExport(await callOf(attacker), attacker, { q: '', format: 'CSV' });
    }
    // The attacker's share is used up by chats that do not end.
    await eventually(() => vendor.requests.length).toBe(4);
    const call = await callOf(bystander);
    const id = await chat(bystander);
    await eventually(() => vendor.requests.filter(({ text }) => text.includes('bystander')).length).toBe(1);
    const job = await startExport(call, bystander, { q: '', format: 'CSV' });
    expect(await endOfJob(call, bystander, job)).toMatchObject({ status: 'success' });
    expect(await endOfJob(call, bystander, id)).toMatchObject({ status: 'success' });
    expect(vendor.requests.filter(({ text }) => text.includes('attacker'))).toHaveLength(4);
  } finally {
    end();
    vendor.behave({ kind: 'answer' });
  }
});
