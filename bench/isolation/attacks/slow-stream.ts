import { type Attack, repeatedly } from './attack.ts';
import { makeAgent, startModel, streamTokens } from './own-model.ts';

const tokens = 20;
const pause = 3_500;

/** A model of the tenant's own that streams a token every 3.5 seconds for 70 seconds: each stream must arrive whole. */
export const attack: Attack = {
  row: 9,
  title: 'streams of a token every 3.5 s, 24 at once',
  seconds: 80,

  fault({ cut = 0, whole = 0 }) {
    return cut > 0 || whole === 0 ? `${whole} streams whole, ${cut} cut` : undefined;
  },

  async run(attacker, signal) {
    const model = await startModel((response) => void streamTokens(response, tokens, pause));
    await makeAgent(attacker, 'slow', model.url);
    const { tenant, call, count } = attacker;
    await repeatedly(24, signal, async () => {
      const response = await call(`/ai-service/${tenant}/agentic/chat-stream`, {
        method: 'POST',
        body: JSON.stringify({ agentId: 'slow', message: 'Slowly, please.' }),
      });
      const text = await response.text();
      count(response.status === 200 ? (text.includes('event: done') ? 'whole' : 'cut') : response.status);
    });
    model.close();
  },
};
