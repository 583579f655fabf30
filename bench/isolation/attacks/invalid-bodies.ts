import { type Attack, repeatedly, send } from './attack.ts';

/** Bodies with a fault in each of 75,000 and more places. */
export const attack: Attack = {
  row: 3,
  title: 'bodies with 500,000 faults, 4 at once',

  async run(attacker, signal) {
    const messages = `{"messages":[${'1,'.repeat(499_999)}1]}`;
    const names = Array.from({ length: 75_000 }, (_, index) => `"k${index}":1`);
    const agent = `{"name":{${names.join(',')}},"llmConfig":{"provider":"shared"}}`;
    const path = `/ai-service/${attacker.tenant}`;
    await repeatedly(4, signal, async (_place, turn) => {
      if (turn % 2 === 0) await send(attacker, 'POST', `${path}/completions`, messages);
      else await send(attacker, 'PUT', `${path}/agentic/agents/many`, agent);
    });
  },
};
