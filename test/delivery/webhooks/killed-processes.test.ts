import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';
import { type RunningCommand, startAnnals } from '../../support/server/command.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer, testSecretKeys } from '../../support/server/server.ts';
import { recordUpdates, subscriptionsOf, verified } from '../../support/server/subscriptions.ts';
import { startReceiver } from '../../support/vendor/receiver.ts';

const random = new Random();
const kills = trials(3);
const documentsOfRound = 30;

const allowed = { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8' };

// It takes the calls of the test, and delivers nothing.
const server = closeAfterAll(await startTestServer({ environment: { ...allowed, ANNALS_DELIVERIES: 'off' } }));
const receiver = closeAfterAll(await startReceiver());

/** One of the processes that deliver. It ends with the test. */
async function startDelivering(): Promise<RunningCommand> {
  const [key = new Uint8Array()] = testSecretKeys;
  const service = startAnnals(['serve'], {
    ...allowed,
    DATABASE_URL: server.database.url,
    ANNALS_SECRET_KEY: Buffer.from(key).toString('base64'),
    PORT: '0',
  });
  onTestFinished(async () => {
    service.process.kill('SIGKILL');
    await service.ended;
  });
  await service.firstLine;
  return service;
}

async function deliverHere(): Promise<undefined> {
  const last = await startTestServer({ environment: allowed, database: server.database });
  onTestFinished(() => last.close());
}

test(`of two processes the one that delivers is killed, ${kills} times: each change arrives, in order, and twice under one id alone`, async () => {
  const acme = subscriptionsOf(server, 'acme', await server.token('acme'));
  const { id, secret } = await acme.make({ q: 'entity:product', target: { type: 'webhook', url: receiver.url } });
  let answers = Promise.resolve();
  receiver.answer = (_received, response) =>
    void answers.then(() => setTimeout(() => response.writeHead(204).end(), random.below(12)));
  let delivering = await startDelivering();
  for (let kill = 0; kill < kills; kill += 1) {
    const documents = Array.from({ length: documentsOfRound }, (_, index) => `p${index % 15}`);
    const seen = receiver.received.length;
    // The other process comes when this one has the subscription, and cannot have it before the kill.
    const { promise, resolve } = Promise.withResolvers<void>();
    answers = promise;
    await recordUpdates(server, 'acme', documents);
    await eventually(() => receiver.received.length).toBeGreaterThan(seen);
    // The last one is not killed.
    const successor = kill + 1 < kills ? await startDelivering() : await deliverHere();
    resolve();
    await sleep(random.below(75));
    delivering.process.kill('SIGKILL');
    if (successor !== undefined) delivering = successor;
    // Once the lease of a dead process ends by itself. Later the time passes quicker.
    if (kill > 0) await server.database.pool.query('update subscription_state set held_until = now()');
  }
  await eventually(() => acme.counts(id)).toMatchObject({
    ...{ matched: kills * documentsOfRound, delivered: kills * documentsOfRound, pending: 0, isWhole: true },
  });
  const idsByPosition = new Map<number, string>();
  const lastOf = new Map<string, number>();
  for (const delivery of receiver.received) {
    const { data } = verified(delivery, secret) as unknown as { data: { position: number; entityId: string } };
    const webhookId = String(delivery.headers['webhook-id']);
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
