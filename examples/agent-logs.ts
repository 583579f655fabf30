// What chats came to and cost: request and session logs. Run it with: node examples/agent-logs.ts
// With curl: curl -s "$ANNALS_URL/ai-service/demo/agentic/logs/requests?pageSize=5" -H "Authorization: Bearer $TOKEN"
import type { RequestLog, SessionLog } from '@annals/client';
import { field } from '@annals/client/query';
import { demoClient } from './annals.ts';

const { logs } = demoClient('ai.agent_read');

function show({ id, severity, duration, promptTokens, completionTokens }: RequestLog | SessionLog): void {
  console.log(`  ${id} ${severity} ${duration} s, ${promptTokens} prompt and ${completionTokens} completion tokens`);
}

const requests = await logs.requests.list({ sort: 'metadata.createdAt:DESC', pageSize: 5, total: true });
console.log(`${requests.total} requests; the latest:`);
for (const log of requests.items) show(log);

console.log('requests that failed:');
for await (const log of logs.requests.list({ q: field('severity').is('ERROR') })) show(log);

console.log('the session that took the most tokens:');
for (const log of (await logs.sessions.list({ sort: 'promptTokens:DESC', pageSize: 1 })).items) show(log);

const agents = await logs.sessions.list({ q: field('agents').is('price-desk'), fields: 'agents,promptTokens' });
console.log(`${agents.items.length} sessions with the price desk`);

for (const { id, sessionId } of requests.items.slice(0, 1)) {
  show(await logs.requests.get(id));
  show(await logs.sessions.get(sessionId));
}
