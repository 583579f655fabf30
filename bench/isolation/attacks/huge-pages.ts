import { setTimeout as sleep } from 'node:timers/promises';
import { fillWithHugeInstances } from '../huge-instances.ts';
import { type Attack, repeatedly } from './attack.ts';

/** Eight clients that each read pages of 400 instances of 1 MB, half of them slowly. */
export const attack: Attack = {
  row: 2,
  title: 'pages of 400 MB, 8 at once',

  fill: (db, tenant) => fillWithHugeInstances(db, tenant, { instances: 400, bytes: 1_000_000 }),

  async run({ tenant, call, count }, signal) {
    await repeatedly(8, signal, async (place, turn) => {
      const size = [400, 100][(place + turn) % 2];
      const response = await call(`/schema/${tenant}/custom-entities/HUGE/instances?pageSize=${size}`);
      let length = 0;
      for await (const chunk of response.body ?? []) {
        length += chunk.length;
        if (place % 2 === 0) await sleep(5);
      }
      count(response.status);
      count(`${Math.round(length / 1e6)} MB read`);
    });
  },
};
