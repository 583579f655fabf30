import { type Attack, repeatedly } from './attack.ts';

/** Bodies with a fault in each of 75,000 and more places. */
export const attack: Attack = {
  row: 3,
  title: 'bodies with 500,000 faults, 4 at once',

  async run({ tenant, call, count }, signal) {
    const messages = `{"messages":[${'1,'.repeat(499_999)}1]}`;
    const names = Array.from({ length: 75_000 }, (_, index) => `"k${index}":1`);
    const agent = `{"name":{${names.join(',')}},"llmConfig":{"provider":"shared"}}`;
    await repeatedly(4, signal, async (_place, turn) => {
      const response =
        turn % 2 === 0
          ? await call(`/ai-service/${tenant}/completions`, { method: 'POST', body: messages })
          : await call(`/ai-service/${tenant}/agentic/agents/many`, { method: 'PUT', body: agent });
      await response.arrayBuffer();
      count(response.status);
    });
  },
};
