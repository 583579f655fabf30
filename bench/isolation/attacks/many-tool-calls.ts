import { type Attack, changesOf, recordAll, repeatedly, send } from './attack.ts';
import { makeAgent, startModel } from './own-model.ts';

const toolCalls = Array.from({ length: 3_000 }, (_, index) => ({
  id: `call_${index}`,
  type: 'function',
  function: {
    name: 'change-history',
    arguments: JSON.stringify({ q: `entityId:p${index} entity:product`, size: 50 }),
  },
}));
const answer = JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'm',
  choices: [
    { index: 0, message: { role: 'assistant', content: null, tool_calls: toolCalls }, finish_reason: 'tool_calls' },
  ],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
});

/** A model of the tenant's own that answers each question with 3,000 calls of the history's tool. */
export const attack: Attack = {
  row: 7,
  title: 'a model that answers with 3,000 tool calls, 4 at once',

  fill: (db, tenant) => recordAll(db, tenant, changesOf(2_000)),

  async run(attacker, signal) {
    const model = await startModel((response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
    });
    await makeAgent(attacker, 'tools', model.url);
    const chat = { agentId: 'tools', message: 'Who changed what?' };
    await repeatedly(4, signal, () => send(attacker, 'POST', `/ai-service/${attacker.tenant}/agentic/chat`, chat));
    model.close();
  },
};
