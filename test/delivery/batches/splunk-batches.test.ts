import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { recordUpdates, subscriptionsOf } from '../../support/server/subscriptions.ts';
import { type SplunkServer, startSplunkServer } from '../../support/vendor/splunk-server.ts';

const minute = 60_000;

let splunk: SplunkServer;
let ahead = 0;

const server = closeAfterAll(
  await startTestServer({
    environment: { ANNALS_DELIVERY_ALLOW: 'acme=127.0.0.0/8' },
    clock: { now: () => Date.now() + ahead },
  }),
);
const acme = subscriptionsOf(server, 'acme', await server.token('acme'));

beforeEach(async () => {
  ahead = 0;
  splunk = await startSplunkServer();
  onTestFinished(() => splunk.close());
});

async function make(): Promise<string> {
  const target = { type: 'splunk', url: splunk.url, token: splunk.token, index: 'audit', maxSeconds: 0 };
  const { id } = await acme.make({ q: 'entity:product', target });
  onTestFinished(async () => void (await acme.call('DELETE', `/${id}`)));
  return id;
}

/** As if the pause of the subscription were over. */
async function wake(id: string): Promise<void> {
  await server.database.pool.query(
    'update subscription_state set rest_until = null, due_at = now() where subscription = $1',
    [id],
  );
}

const idsOf = (one: SplunkServer) => one.accepted.map(({ event }) => (event as { entityId: string }).entityId);

test('with acknowledgement a batch is delivered when it is indexed: it is sent once, and what follows waits for it', async () => {
  splunk.acknowledges = true;
  const id = await make();
  await recordUpdates(server, 'acme', ['a', 'b']);
  await eventually(() => splunk.polls).toBeGreaterThan(0);
  await recordUpdates(server, 'acme', ['c']);
  await eventually(() => splunk.polls).toBeGreaterThan(1);
  expect(await acme.get(id)).toMatchObject({ state: 'active', pending: 2, delivered: 0 });
  expect(idsOf(splunk)).toEqual(['a', 'b']);
  splunk.index();
  await eventually(() => idsOf(splunk)).toEqual(['a', 'b', 'c']);
  splunk.index();
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 3, delivered: 3, isWhole: true });
  expect(idsOf(splunk)).toEqual(['a', 'b', 'c']);
});

test('what is not acknowledged within 5 minutes has failed, and the same batch is sent again', async () => {
  splunk.acknowledges = true;
  const id = await make();
  await recordUpdates(server, 'acme', ['lost']);
  await eventually(() => splunk.polls).toBeGreaterThan(0);
  splunk.forget();
  ahead = 5 * minute + 20_000;
  await wake(id);
  await eventually(() => acme.get(id)).toMatchObject({ state: 'retrying', pending: 1 });
  expect((await acme.get(id)).lastError?.message).toContain('within 5 minutes');
  expect(idsOf(splunk)).toEqual(['lost']);
  splunk.acknowledges = false;
  await wake(id);
  await eventually(() => acme.counts(id)).toMatchObject({ delivered: 1, isWhole: true });
  expect(idsOf(splunk)).toEqual(['lost', 'lost']);
});

test('nothing but failures for 5 days suspends; resumed, the subscription continues with the same batch', async () => {
  const id = await make();
  splunk.refuse({ status: 503, code: 9, text: 'Server is busy' }, { status: 503, code: 9, text: 'Server is busy' });
  await recordUpdates(server, 'acme', ['x']);
  await eventually(() => acme.get(id)).toMatchObject({ state: 'retrying' });
  await server.database.pool.query(
    "update subscription_state set failing_since = now() - interval '5 days 1 minute' where subscription = $1",
    [id],
  );
  await recordUpdates(server, 'acme', ['y']);
  await wake(id);
  await eventually(() => acme.get(id)).toMatchObject({ state: 'suspended', reason: 'failures', pending: 1 });
  expect(await acme.call('POST', `/${id}/resume`)).toMatchObject({ status: 204 });
  await eventually(() => acme.counts(id)).toMatchObject({ matched: 2, delivered: 2, isWhole: true });
  expect(idsOf(splunk)).toEqual(['x', 'y']);
});
