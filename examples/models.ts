// Lists the language models by provider: GET /ai-service/{tenant}/agentic/models. Run it with: node examples/models.ts
// With curl: curl -s "$ANNALS_URL/ai-service/demo/agentic/models" -H "Authorization: Bearer $TOKEN"
import { demoClient } from './annals.ts';

for (const { provider, models } of await demoClient('ai.agent_read').models.list()) {
  console.log(`${provider}: ${models.map(({ id }) => id).join(', ')}`);
}
