import { setTimeout as sleep } from 'node:timers/promises';
import { type Attack, repeatedly, send } from './attack.ts';
import { deltaOf, startModel } from './own-model.ts';

const deltas = deltaOf({ content: 'token ' }).repeat(50);
const pause = 5;

/** An AI client of the tenant's own reads endless streams: 50 deltas every 5 ms, as fast as it can. */
export const attack: Attack = {
  row: 12,
  title: 'endless streams of 50 deltas every 5 ms, 32 at once',

  fault({ deltas: count = 0 }) {
    return count === 0 ? 'no delta came' : undefined;
  },

  async run(attacker, signal) {
    const { tenant, call, count } = attacker;
    const model = await startModel(async (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (; !response.destroyed; await sleep(pause)) if (!response.writableNeedDrain) response.write(deltas);
    });
    const item = { key: 'selfHostedProvider', value: JSON.stringify({ url: `${model.url}/v1` }) };
    await send(attacker, 'POST', `/configuration/${tenant}/configurations`, [item]);
    await repeatedly(32, signal, async () => {
      const response = await call(`/openai/${tenant}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'self_hosted/m', stream: true, messages: [{ role: 'user', content: 'Go on.' }] }),
      });
      if (response.status !== 200 || response.body === null) {
        count(response.status);
        await response.arrayBuffer();
        return;
      }
      for await (const chunk of response.body)
        count('deltas', Buffer.from(chunk).toString('latin1').split('token ').length - 1);
      count('ended');
    });
    model.close();
  },
};
