import { createRecorder } from '../../../src/recording/record-change.ts';
import { changesOf } from '../changes.ts';
import { type Attack, repeatedly } from './attack.ts';
import { makeAgent } from './own-agent.ts';
import { startModel } from './own-model.ts';

const calls = 3_000;

/** A model of the tenant's own that answers each question with 3,000 calls of the history's tool. */
export const attack: Attack = {
  row: 7,
  title: 'a model that answers with 3,000 tool calls, 4 at once',

  async fill(db, tenant) {
    await createRecorder(db, tenant, () => Date.now())(changesOf(2_000));
  },

  async run(attacker, signal) {
    const model = await startModel((response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer()));
    });
    await makeAgent(attacker, 'tools', model.url);
    const { tenant, call, count } = attacker;
    await repeatedly(4, signal, async () => {
      const response = await call(`/ai-service/${tenant}/agentic/chat`, {
        method: 'POST',
        body: JSON.stringify({ agentId: 'tools', message: 'Who changed what?' }),
      });
      await response.arrayBuffer();
      count(response.status);
    });
    model.close();
  },
};

function answer(): object {
  const toolCalls = Array.from({ length: calls }, (_, index) => ({
    id: `call_${index}`,
    type: 'function',
    function: {
      name: 'change-history',
      arguments: JSON.stringify({ q: `entityId:p${index} entity:product`, size: 50 }),
    },
  }));
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1_790_000_000,
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content: null, tool_calls: toolCalls }, finish_reason: 'tool_calls' },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  };
}
