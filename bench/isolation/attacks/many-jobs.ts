import { setTimeout as sleep } from 'node:timers/promises';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { changesOf } from '../changes.ts';
import { type Attack, repeatedly } from './attack.ts';
import { makeAgent } from './own-agent.ts';

const chats = 60;
const exports = 30;
const secondsOfChat = 15;

/** Queues 60 chats that take 15 seconds each, and 30 exports; and keeps queueing exports. */
export const attack: Attack = {
  row: 6,
  title: '60 chats of 15 s and 30 exports in the queue',

  async fill(db, tenant) {
    await createRecorder(db, tenant, () => Date.now())(changesOf(2_000));
  },

  async prepare(attacker) {
    attacker.vendor.behave({ kind: 'answer', delay: secondsOfChat * 1_000 });
    await makeAgent(attacker, 'own', attacker.vendor.baseUrl);
  },

  async run({ tenant, call, count }, signal) {
    const post = async (path: string, body: object) => {
      const response = await call(path, { method: 'POST', body: JSON.stringify(body) });
      await response.arrayBuffer();
      count(response.status);
    };
    const chat = { agentId: 'own', message: 'Take your time.' };
    for (let index = 0; index < chats; index += 1) await post(`/ai-service/${tenant}/agentic/chat-async`, chat);
    const job = { type: 'EXPORT', q: '', format: 'NDJSON' };
    for (let index = 0; index < exports; index += 1) await post(`/ai-service/${tenant}/jobs`, job);
    await repeatedly(1, signal, async () => {
      await post(`/ai-service/${tenant}/jobs`, job);
      await sleep(200, undefined, { signal });
    });
  },
};
