import { type Attack, repeatedly, send } from './attack.ts';

const bodies = [1, 2].map(
  (value) => `{${Array.from({ length: 80_000 }, (_, index) => `"k${index}":${value}`).join(',')}}`,
);

/** Documents with 80,000 keys, created and replaced 16 at once. */
export const attack: Attack = {
  row: 5,
  title: 'documents with 80,000 keys, 16 at once',

  prepare: (attacker) =>
    send(attacker, 'POST', `/schema/${attacker.tenant}/custom-entities`, { id: 'WIDE', name: { en: 'Wide' } }),

  async run(attacker, signal) {
    const path = `/schema/${attacker.tenant}/custom-entities/WIDE/instances`;
    await repeatedly(16, signal, (place, turn) =>
      send(attacker, 'PUT', `${path}/w${place}`, bodies[turn % bodies.length]),
    );
  },
};
