import { setTimeout as sleep } from 'node:timers/promises';
import type { Attack } from './attack.ts';

/** 300 guesses of a client's secret at once, over and over. At most 10 may be tried, then one in 5 seconds. */
export const attack: Attack = {
  row: 8,
  title: '300 parallel guesses of a secret',

  fault({ tried = 0 }, seconds, attackers) {
    return tried > attackers * (11 + seconds / 5) ? `${tried} guesses tried` : undefined;
  },

  async run({ tenant, callOpen, count }, signal) {
    const guess = async (place: number) => {
      const response = await callOpen('/oauth/token', {
        method: 'POST',
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: `${tenant}.${'0'.repeat(20)}`,
          client_secret: `guess ${place}`,
        }),
      });
      await response.arrayBuffer();
      count(response.status === 401 ? 'tried' : response.status);
    };
    while (!signal.aborted) {
      await Promise.allSettled(Array.from({ length: 300 }, (_, place) => guess(place)));
      await sleep(200, undefined, { signal }).catch(() => {});
    }
  },
};
