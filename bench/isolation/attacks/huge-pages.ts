import { setTimeout as sleep } from 'node:timers/promises';
import { type Attack, insertInstances, repeatedly } from './attack.ts';

const instances =
  "select 'h' || n as id, format('\"text\":\"%s\"', repeat('x', 1000000)) as members from generate_series(1, 400) n";

/** Eight clients that each read pages of 400 instances of 1 MB, half of them slowly. */
export const attack: Attack = {
  row: 2,
  title: 'pages of 400 MB, 8 at once',

  fill: (db, tenant) => insertInstances(db, tenant, 'HUGE', instances),

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
