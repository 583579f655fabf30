import { setTimeout as sleep } from 'node:timers/promises';
import { callAgentic, putAgent } from '../../support/server/agents.ts';
import { startTestServer, type TestServer, type TestServerOptions } from '../../support/server/server.ts';
import { startVendor, type Vendor } from '../../support/vendor/vendor-server.ts';

export const tenant = 'acme';

export interface RequestLog {
  id: string;
  requestId: string;
  sessionId: string;
  triggerAgentId: string;
  severity: string;
  cause?: string;
  messages: { timestamp: string; severity: string; message: string; agentId: string; requestId: string }[];
  duration: number;
  durationMs: number;
  promptTokens: number;
  completionTokens: number;
  metadata: object;
}

/** A server with the agent `desk`, and the vendor that its models are at. */
export interface Chats {
  vendor: Vendor;
  server: TestServer;
  token: string;
  /** A second server on the same database. */
  startBeside(options?: Pick<TestServerOptions, 'completionTimes'>): Promise<TestServer>;
  chat(body: unknown, headers?: Record<string, string>, on?: TestServer, path?: string): Promise<Response>;
  logsOf(sessionId: string): Promise<RequestLog[]>;
  /** Sets the vendor back to its default answer. */
  forget(): void;
  close(): Promise<void>;
}

export async function startChats(): Promise<Chats> {
  const vendor = await startVendor();
  const environment = {
    OPENAI_BASE_URL: vendor.baseUrl,
    ANTHROPIC_BASE_URL: vendor.baseUrl,
    GOOGLE_BASE_URL: vendor.baseUrl,
    ANNALS_SHARED_PROVIDER_TOKEN: 'sk-shared',
  };
  const server = await startTestServer({ environment });
  const token = await server.token(tenant);
  await putAgent(server, { tenant, token, id: 'desk' }, { userPrompt: 'Be brief.' });
  const others: TestServer[] = [];
  return {
    vendor,
    server,
    token,
    async startBeside(options = {}) {
      const second = await startTestServer({ environment, database: server.database, ...options });
      others.push(second);
      return second;
    },
    chat: (body, headers = {}, on = server, path = '/chat') => callAgentic(on, { tenant, token, path, headers }, body),
    async logsOf(sessionId) {
      const path = `/logs/requests?q=sessionId:${sessionId}&pageSize=500`;
      return (await (await callAgentic(server, { tenant, token, path, method: 'GET' })).json()) as RequestLog[];
    },
    forget() {
      vendor.behave({ kind: 'answer' });
      vendor.requests.length = 0;
    },
    async close() {
      for (const started of others) await started.close();
      await server.close();
      await vendor.close();
    },
  };
}

export async function until(done: () => Promise<boolean>, pause = 25): Promise<void> {
  const end = performance.now() + 40_000;
  while (!(await done())) {
    if (performance.now() > end) throw new Error('it did not come to pass');
    await sleep(pause);
  }
}
