import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Attack, repeatedly } from './attack.ts';
import { makeAgent } from './own-agent.ts';
import { startModel } from './own-model.ts';

const tokens = 20;
const pause = 3_500;

/** A model of the tenant's own that streams a token every 3.5 seconds for 70 seconds: each stream has to arrive whole. */
export const attack: Attack = {
  row: 9,
  title: 'streams of a token every 3.5 s, 24 at once',
  seconds: 80,

  fault({ cut = 0, whole = 0 }) {
    return cut > 0 || whole === 0 ? `${whole} streams whole, ${cut} cut` : undefined;
  },

  async run(attacker, signal) {
    const model = await startModel((response) => void stream(response));
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

async function stream(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let token = 0; token < tokens; token += 1) {
    response.write(chunk({ content: `t${token} ` }, null));
    await sleep(pause);
  }
  response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
}

function chunk(delta: object, reason: string | null): string {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`;
}
