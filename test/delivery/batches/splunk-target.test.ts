import { createHash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import type { DeliveredBatch } from '../../../src/delivery/batches/batch-target.ts';
import { createSplunkTarget } from '../../../src/delivery/batches/splunk-target.ts';
import type { Sending } from '../../../src/delivery/targets/target.ts';
import { deliveredChange, sendingOf } from '../../support/server/delivered-changes.ts';
import { type SplunkServer, startSplunkServer } from '../../support/vendor/splunk-server.ts';
import { localHttp } from './senders.ts';

async function open(members: object = {}) {
  const splunk = await startSplunkServer();
  onTestFinished(() => splunk.close());
  const target = createSplunkTarget({ http: localHttp(), baseUrl: 'https://history.example', now: () => 1_000 });
  const sending = sendingOf({ type: 'splunk', url: splunk.url, token: splunk.token, ...members });
  const changes = [1, 2].map((position) => deliveredChange(position));
  const send = (batch: Partial<DeliveredBatch> = {}) =>
    target.deliverBatch(sending, { ...batchOf(target.join(sending, target.textsOf(sending, changes))), ...batch });
  return { splunk, target, sending, changes, send };
}

function batchOf(text: string): DeliveredBatch {
  const sha256 = createHash('sha256').update(text).digest('hex');
  const bounds = { first: 1, last: 2, changes: 2, day: '2026-11-23', key: 'k' };
  return { ...bounds, text, sha256, hashes: [sha256], receipt: undefined };
}

test('without acknowledgement a batch is delivered when Splunk accepts it, each change an event at its own time', async () => {
  const { splunk, changes, send } = await open({ index: 'audit', sourcetype: 'annals' });
  expect(await send()).toMatchObject({ outcome: 'delivered' });
  expect(splunk.accepted).toEqual(
    changes.map(({ at, text }) => ({
      time: at / 1_000,
      source: 'https://history.example/changelog/shop',
      index: 'audit',
      sourcetype: 'annals',
      event: JSON.parse(text),
    })),
  );
  expect(splunk.bodies[0]).toContain('"before":39.90');
  expect(splunk.polls).toBe(0);
});

test('with acknowledgement a batch is taken, and delivered when Splunk says that it is indexed; asking sends nothing again', async () => {
  const { splunk, send } = await open();
  splunk.acknowledges = true;
  const taken = await send();
  expect(taken).toMatchObject({ outcome: 'taken', receipt: '0' });
  expect(await send({ receipt: '0' })).toMatchObject({ outcome: 'taken', receipt: '0' });
  splunk.index();
  expect(await send({ receipt: '0' })).toMatchObject({ outcome: 'delivered' });
  expect(splunk.accepted).toHaveLength(2);
  expect(splunk.polls).toBe(2);
});

test('acknowledgement that was switched off since leaves the batch accepted', async () => {
  const { splunk, send } = await open();
  splunk.acknowledges = true;
  const { receipt } = await send();
  splunk.acknowledges = false;
  expect(await send({ receipt })).toMatchObject({ outcome: 'delivered' });
});

test.each<[string, object, (splunk: SplunkServer) => void]>([
  ['a wrong token', { token: 'another' }, () => {}],
  ['a wrong index', { index: 'nowhere' }, () => {}],
  ['a busy server', {}, (splunk) => splunk.refuse({ status: 503, code: 9, text: 'Server is busy' })],
])('%s has the batch fail', async (_what, members, prepare) => {
  const { splunk, send } = await open(members);
  prepare(splunk);
  expect(await send()).toMatchObject({ outcome: 'failed' });
  expect(splunk.accepted).toEqual([]);
});

test('a sample says that it is one', async () => {
  const { splunk, target, sending } = await open();
  splunk.acknowledges = true;
  expect(await target.test(sending as Sending)).toMatchObject({ outcome: 'delivered' });
  expect(splunk.accepted).toMatchObject([{ event: { sample: true } }]);
});
