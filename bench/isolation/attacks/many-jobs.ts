import { setTimeout as sleep } from 'node:timers/promises';
import { type Attack, changesOf, recordAll, repeatedly, send } from './attack.ts';
import { makeAgent } from './own-model.ts';

/** Queues 60 chats that take 15 seconds each and 30 exports, and keeps queueing exports. */
export const attack: Attack = {
  row: 6,
  title: '60 chats of 15 s and 30 exports in the queue',

  fill: (db, tenant) => recordAll(db, tenant, changesOf(2_000)),

  async prepare(attacker) {
    attacker.vendor.behave({ kind: 'answer', delay: 15_000 });
    await makeAgent(attacker, 'own', attacker.vendor.baseUrl);
  },

  async run(attacker, signal) {
    const path = `/ai-service/${attacker.tenant}`;
    const chat = { agentId: 'own', message: 'Take your time.' };
    for (let index = 0; index < 60; index += 1) await send(attacker, 'POST', `${path}/agentic/chat-async`, chat);
    const queueExport = () => send(attacker, 'POST', `${path}/jobs`, { type: 'EXPORT', q: '', format: 'NDJSON' });
    for (let index = 0; index < 30; index += 1) await queueExport();
    await repeatedly(1, signal, async () => {
      await queueExport();
      await sleep(200, undefined, { signal });
    });
  },
};
