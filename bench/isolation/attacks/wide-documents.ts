import { type Attack, repeatedly } from './attack.ts';

const bodies = [1, 2].map(
  (value) => `{${Array.from({ length: 80_000 }, (_, index) => `"k${index}":${value}`).join(',')}}`,
);

/** Documents with 80,000 keys, made and replaced 16 at once. */
export const attack: Attack = {
  row: 5,
  title: 'documents with 80,000 keys, 16 at once',

  async prepare({ tenant, call }) {
    const made = await call(`/schema/${tenant}/custom-entities`, {
      method: 'POST',
      body: '{"id":"WIDE","name":{"en":"Wide"}}',
    });
    await made.arrayBuffer();
  },

  async run({ tenant, call, count }, signal) {
    await repeatedly(16, signal, async (place, turn) => {
      const response = await call(`/schema/${tenant}/custom-entities/WIDE/instances/w${place}`, {
        method: 'PUT',
        body: bodies[turn % bodies.length] ?? '',
      });
      await response.arrayBuffer();
      count(response.status);
    });
  },
};
