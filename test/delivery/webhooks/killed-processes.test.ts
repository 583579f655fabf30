import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer, type TestServer, testSecretKeys } from '../../support/server/server.ts';
import { type ServiceProcesses, startServices } from '../../support/server/service-processes.ts';
import { recordUpdates, subscriptionsOf, verified } from '../../support/server/subscriptions.ts';
import { type Receiver, startReceiver } from '../../support/vendor/receiver.ts';

const random = new Random();
const kills = trials(1);
const documentsOfRound = 60;

let server: TestServer;
let services: ServiceProcesses;
let receiver: Receiver;

beforeAll(async () => {
  // It takes the calls of the test, and delivers nothing.
  const environment = { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8' };
  server = await startTestServer({ environment: { ...environment, ANNALS_DELIVERIES: 'off' } });
  const [key = new Uint8Array()] = testSecretKeys;
  services = await startServices(2, {
    ...environment,
    DATABASE_URL: server.database.url,
    ANNALS_SECRET_KEY: Buffer.from(key).toString('base64'),
  });
  receiver = await startReceiver();
});

afterAll(async () => {
  await services.end();
  await receiver.close();
  await server.close();
});

test(`with two processes, of which each is killed ${kills} times, each change arrives, in order, and twice under one id alone`, async () => {
  const acme = subscriptionsOf(server, 'acme', await server.token('acme'));
  const { id, secret } = await acme.make({ q: 'entity:product', target: { type: 'webhook', url: receiver.url } });
  receiver.answer = (_received, response) => void setTimeout(() => response.writeHead(204).end(), random.below(12));
  for (let kill = 0; kill < kills; kill += 1) {
    const documents = Array.from({ length: documentsOfRound }, (_, index) => `p${index % 15}`);
    await recordUpdates(server, 'acme', documents);
    const seen = receiver.received.length;
    await eventually(() => receiver.received.length > seen);
    await sleep(random.below(150));
    // Whichever holds the subscription.
    await Promise.all([services.replace(kill % 2), services.replace((kill + 1) % 2)]);
  }
  await eventually(() => acme.counts(id)).toMatchObject({
    ...{ matched: kills * documentsOfRound, delivered: kills * documentsOfRound, pending: 0, isWhole: true },
  });
  const idsByPosition = new Map<number, string>();
  const lastOf = new Map<string, number>();
  for (const one of receiver.received) {
    const { data } = verified(one, secret) as unknown as { data: { position: number; entityId: string } };
    const webhookId = String(one.headers['webhook-id']);
    const known = idsByPosition.get(data.position);
    expect(known ?? webhookId).toBe(webhookId);
    idsByPosition.set(data.position, webhookId);
    // What comes for the first time comes after all earlier changes of its document.
    if (known === undefined) expect(data.position).toBeGreaterThan(lastOf.get(data.entityId) ?? 0);
    lastOf.set(data.entityId, Math.max(data.position, lastOf.get(data.entityId) ?? 0));
  }
  expect(idsByPosition.size).toBe(kills * documentsOfRound);
  expect(new Set(idsByPosition.values()).size).toBe(kills * documentsOfRound);
});
