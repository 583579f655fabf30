// Chats with the agent that examples/agents.ts makes: at once, streamed, and by a job. The service needs
// ANNALS_SHARED_PROVIDER_TOKEN for an answer. Run it with, for instance:
// node examples/chat.ts 'Who changed the price of a product last week?'
import { setTimeout as sleep } from 'node:timers/promises';
import { getToken, setting } from './token.ts';

const [message = 'Who changed the price of a product last week?'] = process.argv.slice(2);
// With a changelog scope the agent may look into the change history for this client.
const token = await getToken('ai.agentexecution_manage ai.agent_read changelog.changelog_read');
const base = `${setting('ANNALS_URL')}/ai-service/demo`;

async function post(path: string, text: string, session?: string): Promise<Response> {
  return await fetch(`${base}/agentic${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      ...(session === undefined ? {} : { 'session-id': session }),
    },
    body: JSON.stringify({ agentId: 'price-desk', message: text }),
  });
}

const first = await post('/chat', message);
console.log(`${first.status} ${await first.text()}`);
const sessionId = first.headers.get('session-id') ?? '';

// The same session goes on, and its answer comes as it is written.
const streamed = await post('/chat-stream', 'And who before that?', sessionId);
for await (const piece of streamed.body?.pipeThrough(new TextDecoderStream()) ?? []) process.stdout.write(piece);

const { jobId } = (await (await post('/chat-async', 'Sum it up.', sessionId)).json()) as { jobId: string };
for (let status = 'in_progress'; status === 'in_progress'; await sleep(500)) {
  const job = await fetch(`${base}/jobs/${jobId}`, { headers: { authorization: `Bearer ${token}` } });
  const found = (await job.json()) as { status: string; response?: unknown };
  status = found.status;
  console.log(`job ${jobId}: ${status} ${JSON.stringify(found.response ?? '')}`);
}
