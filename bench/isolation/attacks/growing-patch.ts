import { type Attack, repeatedly } from './attack.ts';

/** A patch of 1 KiB that copies a value into itself 20 times, so that it doubles each time. */
export const attack: Attack = {
  row: 4,
  title: 'patches that double a value 20 times, 8 at once',

  async prepare({ tenant, call }) {
    const made = await call(`/schema/${tenant}/custom-entities`, {
      method: 'POST',
      body: '{"id":"THING","name":{"en":"Thing"}}',
    });
    await made.arrayBuffer();
    const put = await call(`/schema/${tenant}/custom-entities/THING/instances/one`, { method: 'PUT', body: '{"a":1}' });
    await put.arrayBuffer();
  },

  async run({ tenant, call, count }, signal) {
    const patch = [
      { op: 'add', path: '/x', value: {} },
      ...Array.from({ length: 20 }, (_, index) => ({ op: 'copy', from: '/x', path: `/x/${index}` })),
    ];
    await repeatedly(8, signal, async () => {
      const response = await call(`/schema/${tenant}/custom-entities/THING/instances/one`, {
        method: 'PATCH',
        body: JSON.stringify(patch),
        contentType: 'application/json-patch+json',
      });
      await response.arrayBuffer();
      count(response.status);
    });
  },
};
