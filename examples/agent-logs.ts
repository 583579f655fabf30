// What chats came to and cost: request and session logs. Run it with: node examples/agent-logs.ts
import { getToken, setting } from './token.ts';

interface Log {
  id: string;
  sessionId: string;
  severity: string;
  duration: number;
  promptTokens: number;
  completionTokens: number;
}

const token = await getToken('ai.agent_read');
const base = `${setting('ANNALS_URL')}/ai-service/demo/agentic/logs`;

async function call(method: string, path: string, body?: unknown): Promise<Log[]> {
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-total-count': 'true' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const total = response.headers.get('x-total-count');
  console.log(`${method} ${path}: ${response.status}${total === null ? '' : `, ${total} in all`}`);
  const found = (await response.json()) as Log | Log[];
  return Array.isArray(found) ? found : [found];
}

function show(logs: readonly Log[]): void {
  for (const { id, severity, duration, promptTokens, completionTokens } of logs) {
    console.log(`  ${id} ${severity} ${duration} s, ${promptTokens} prompt and ${completionTokens} completion tokens`);
  }
}

const requests = await call('GET', '/requests?sort=metadata.createdAt:DESC&pageSize=5');
show(requests);
show(await call('POST', '/requests/search?sort=promptTokens:DESC', { q: 'severity:ERROR' }));
show(await call('GET', '/sessions?q=promptTokens:>0&fields=severity,duration,promptTokens,completionTokens'));
show(await call('POST', '/sessions/search?pageSize=5', { q: 'agents.0:price-desk' }));
for (const { id, sessionId } of requests.slice(0, 1)) {
  show(await call('GET', `/requests/${id}`));
  show(await call('GET', `/sessions/${sessionId}`));
}
