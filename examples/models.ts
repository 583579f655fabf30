// Lists the language models by provider: GET /ai-service/{tenant}/agentic/models. Run it with: node examples/models.ts
import { getToken, setting } from './token.ts';

interface Group {
  provider: string;
  models: { id: string; name: string; description?: string; thinking?: boolean }[];
}

const token = await getToken('ai.agent_read');
const response = await fetch(`${setting('ANNALS_URL')}/ai-service/demo/agentic/models`, {
  headers: { authorization: `Bearer ${token}` },
});
if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);

for (const { provider, models } of (await response.json()) as Group[]) {
  console.log(`${provider}: ${models.map(({ id }) => id).join(', ')}`);
}
