// Chats with the agent that examples/agents.ts makes: at once, streamed, and by a job. The service needs
// ANNALS_SHARED_PROVIDER_TOKEN for an answer. Run it with, for instance:
// node examples/chat.ts 'Who changed the price of a product last week?'
// With curl: curl -sN "$ANNALS_URL/ai-service/demo/agentic/chat-stream" -H "Authorization: Bearer $TOKEN" \
//   -H 'Content-Type: application/json' -d '{"agentId":"price-desk","message":"Who changed a price?"}'
import { ApiError } from '@annals/client';
import { demoClient } from './annals.ts';

const [message = 'Who changed the price of a product last week?'] = process.argv.slice(2);
const agentId = 'price-desk';
// With a changelog scope the agent may look into the change history for this client.
const annals = demoClient('ai.agentexecution_manage ai.agent_read changelog.changelog_read');

try {
  const { sessionId, message: answer } = await annals.chat.send({ agentId, message });
  console.log(answer);

  // The same session goes on, and its answer comes as it is written.
  for await (const text of annals.chat.stream({ agentId, message: 'And who before that?', sessionId })) {
    process.stdout.write(text);
  }

  const { jobId } = await annals.chat.queue({ agentId, message: 'Sum it up.', sessionId });
  const job = await annals.jobs.wait(jobId);
  console.log(`\njob ${jobId}: ${job.status}`, job.message);
} catch (error) {
  if (!(error instanceof ApiError)) throw error;
  console.log(`${error.status} ${error.type}: ${error.message}`);
  if (error.status === 404) console.log('There is no agent to chat with. First run: node examples/agents.ts');
  if (error.status === 503) {
    console.log(
      'Nothing answers, because the service has no token for a provider. Start it with ANNALS_SHARED_PROVIDER_TOKEN, or give ' +
        'the agent a provider and a key of your own: llmConfig in examples/agents.ts.',
    );
  }
}
