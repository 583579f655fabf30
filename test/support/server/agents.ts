import type { TestServer } from './server.ts';

/** Calls an operation of the agents with a JSON body. */
export async function callAgentic(
  server: TestServer,
  { tenant, token, path, method = 'POST', headers = {} }: AgenticCall,
  body?: unknown,
): Promise<Response> {
  return await server.call(`/ai-service/${tenant}/agentic${path}`, { token, method, headers, json: body });
}

export interface AgenticCall {
  readonly tenant: string;
  readonly token: string;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

export const agentKey = 'sk-key-of-the-agent-that-nobody-may-see';

/** Makes or replaces an agent of a vendor, with whatever else it is to have. */
export async function putAgent(
  server: TestServer,
  { tenant, token, id }: { tenant: string; token: string; id: string },
  agent: Record<string, unknown> = {},
): Promise<void> {
  const llmConfig = { provider: 'openai', model: 'gpt-5.4-mini', apiKey: agentKey };
  const body = { name: { en: id }, llmConfig, ...agent };
  const path = `/agents/${encodeURIComponent(id)}`;
  const response = await callAgentic(server, { tenant, token, path, method: 'PUT' }, body);
  if (response.status !== 201 && response.status !== 204) {
    throw new Error(`no agent: ${response.status} ${await response.text()}`);
  }
}

export interface SeenEvent {
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** The events of a streamed chat. */
export function eventsOf(text: string): SeenEvent[] {
  return text.split('\n\n').flatMap((block) => {
    const event = /^event: (.*)$/m.exec(block)?.[1];
    const data = /^data: (.*)$/m.exec(block)?.[1];
    return event === undefined || data === undefined ? [] : [{ event, data: JSON.parse(data) }];
  });
}

/** All items of a list, page by page. */
export async function allOf<Item>(server: TestServer, call: Omit<AgenticCall, 'method'>): Promise<Item[]> {
  const items: Item[] = [];
  let next: string | null = '';
  while (next !== null) {
    const paging: string = `pageSize=500${next === '' ? '' : `&next=${next}`}`;
    const path = `${call.path}${call.path.includes('?') ? '&' : '?'}${paging}`;
    const response: Response = await callAgentic(server, { ...call, path, method: 'GET' });
    if (response.status !== 200) throw new Error(`no list: ${response.status} ${await response.text()}`);
    items.push(...((await response.json()) as Item[]));
    next = response.headers.get('x-next-cursor');
  }
  return items;
}
