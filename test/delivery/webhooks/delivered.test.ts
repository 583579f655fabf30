import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { recordUpdates, subscriptionsOf, verified } from '../../support/server/subscriptions.ts';
import { type Receiver, startReceiver } from '../../support/vendor/receiver.ts';

let server: TestServer;
let token: string;
let receiver: Receiver;

beforeAll(async () => {
  server = await startTestServer({ environment: { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8' } });
  token = await server.token('acme', { name: 'Jane' });
  receiver = await startReceiver();
});

afterAll(async () => {
  await receiver.close();
  await server.close();
});

beforeEach(() => {
  receiver.received.length = 0;
});

test('each change is delivered once, in the order of its document, and the receiver can check who sent it', async () => {
  const acme = subscriptionsOf(server, 'acme', token);
  const { id, secret } = await acme.make({ q: 'entity:product', target: { type: 'webhook', url: receiver.url } });
  const documents = Array.from({ length: 60 }, (_, index) => `p${index % 7}`);
  for (let first = 0; first < documents.length; first += 10) {
    await recordUpdates(server, 'acme', documents.slice(first, first + 10));
  }
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 60, delivered: 60, isWhole: true });
  const bodies = receiver.received.map((one) => verified(one, secret));
  expect(bodies.map(({ data }) => data.entityId).sort()).toEqual([...documents].sort());
  expect(receiver.received[0]?.body).toContain('"after":1.20');
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(60);
});
