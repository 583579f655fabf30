import { afterAll, expect, test } from 'vitest';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { recordUpdates, subscriptionsOf } from '../../support/server/subscriptions.ts';
import { type Receiver, startReceiver } from '../../support/vendor/receiver.ts';

/** They would take three times the places that a tenant has in a process. */
const targets = 12;

let slow: Receiver;
let quick: Receiver;

const server = await startTestServer({ environment: { ANNALS_DELIVERY_ALLOW: 'noisy=127.0.0.0/8,quiet=127.0.0.0/8' } });
[slow, quick] = [await startReceiver(), await startReceiver()];

afterAll(async () => {
  await Promise.all([slow.close(), quick.close()]);
  await server.close();
});

test(`a tenant whose ${targets} targets hang with all places they can have holds up no delivery of another tenant`, async () => {
  // Nothing of the noisy tenant ever ends.
  slow.answer = () => {};
  const noisy = subscriptionsOf(server, 'noisy', await server.token('noisy'));
  for (let n = 0; n < targets; n += 1) {
    await noisy.make({ q: 'entity:product', target: { type: 'webhook', url: slow.url, concurrency: 8 } });
  }
  await recordUpdates(
    server,
    'noisy',
    Array.from({ length: 40 }, (_, index) => `p${index}`),
  );
  // Half of the places of a process, and no more.
  await eventually(() => slow.received.length).toBe(32);
  const quiet = subscriptionsOf(server, 'quiet', await server.token('quiet'));
  const { id } = await quiet.make({ q: 'entity:product', target: { type: 'webhook', url: quick.url } });
  await recordUpdates(
    server,
    'quiet',
    Array.from({ length: 40 }, (_, index) => `p${index}`),
  );
  await eventually(() => quiet.counts(id)).toMatchObject({ delivered: 40, isWhole: true });
  expect(slow.received).toHaveLength(32);
});
