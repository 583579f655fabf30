import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { gunzipSync } from 'node:zlib';
import S3rver from 's3rver';
import { expect, onTestFinished, test } from 'vitest';
import type { DeliveredBatch } from '../../../src/delivery/batches/batch-target.ts';
import { createS3Target } from '../../../src/delivery/batches/s3-target.ts';
import { deliveredChange, sendingOf } from '../../support/server/delivered-changes.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startS3Server } from '../../support/vendor/s3-server.ts';
import { localHttp } from './senders.ts';

const id = '3f0c2a5e-6d0b-4c1e-9a57-1f0b6c2d7e88';

async function open(
  members: object = {},
  now = () => Date.UTC(2026, 10, 23, 12),
  { isUnconditional = false, isAccepted = false } = {},
) {
  const server = await startS3Server({ isUnconditional });
  onTestFinished(() => server.close());
  const { region, bucket, accessKeyId, secretAccessKey } = server;
  const s3 = {
    type: 's3',
    endpoint: server.url,
    region,
    bucket,
    accessKeyId,
    secretAccessKey,
    prefix: 'annals/',
    ...members,
  };
  const sending = sendingOf(s3, id);
  const target = createS3Target({
    http: localHttp(),
    baseUrl: undefined,
    now,
    unconditional: isAccepted ? [new URL(server.url).host] : [],
  });
  return { server, sending, target };
}

function batchOf(text: string, others: Partial<DeliveredBatch> = {}): DeliveredBatch {
  const sha256 = sumOf(text);
  const bounds = { first: 1, last: 2, changes: 2, day: '2026-11-23', key: 'k' };
  return { ...bounds, text, sha256, hashes: [sha256], receipt: undefined, ...others };
}

function sumOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

const key = `annals/${id}/date=2026-11-23/1-2.ndjson.gz`;

test('a batch is an object by its day and positions, compressed, with the sum of its text; @smithy/signature-v4 has judged the signature', async () => {
  const { server, sending, target } = await open();
  const text = target.join(sending, target.textsOf(sending, [deliveredChange(1), deliveredChange(2)]));
  expect(await target.deliverBatch(sending, batchOf(text))).toMatchObject({ outcome: 'delivered' });
  expect([...server.objects.keys()]).toEqual([key]);
  const { body, metadata, contentType } = server.objects.get(key) ?? { body: Buffer.alloc(0) };
  expect(gunzipSync(body).toString()).toBe(text);
  expect(metadata).toEqual({ 'annals-sha256': sumOf(text), 'annals-changes': '2' });
  expect(contentType).toBe('application/gzip');
});

test.each(["it's/(odd)*!/_=", '', 'a/b/'])('the signature is right for the prefix %j', async (prefix) => {
  const { server, sending, target } = await open({ prefix });
  expect(await target.deliverBatch(sending, batchOf('x'))).toMatchObject({ outcome: 'delivered' });
  expect([...server.objects.keys()]).toEqual([`${prefix}${id}/date=2026-11-23/1-2.ndjson.gz`]);
});

test('an object that is there with a sum of ours is delivered, and is not written again', async () => {
  const { server, sending, target } = await open();
  await target.deliverBatch(sending, batchOf('one\n'));
  // Erasure has made another text of it since.
  const repeated = batchOf('o**\n', { hashes: [sumOf('one\n'), sumOf('o**\n')] });
  expect(await target.deliverBatch(sending, repeated)).toMatchObject({ outcome: 'delivered' });
  expect(gunzipSync(server.objects.get(key)?.body ?? '').toString()).toBe('one\n');
  expect(server.requests).toEqual([`PUT ${key} 200`, `PUT ${key} 412`, `HEAD ${key} 200`]);
});

test('an object that is there with another sum, or with none, suspends', async () => {
  for (const metadata of [{ 'annals-sha256': sumOf('two\n') }, {}]) {
    const { server, sending, target } = await open();
    server.objects.set(key, { body: Buffer.from('?'), contentType: undefined, metadata });
    const { outcome, error } = await target.deliverBatch(sending, batchOf('one\n'));
    expect({ outcome, error }).toEqual({
      outcome: 'suspended',
      error: `The bucket has another object of this name: ${key}`,
    });
  }
});

test('a batch of which nothing is left was delivered where an earlier attempt has arrived, and is absent where none has', async () => {
  const { sending, target } = await open();
  const empty = batchOf('', { hashes: [sumOf('one\n')] });
  expect(await target.deliverBatch(sending, empty)).toMatchObject({ outcome: 'delivered', isAbsent: true });
  await target.deliverBatch(sending, batchOf('one\n'));
  const found = await target.deliverBatch(sending, empty);
  expect(found).toMatchObject({ outcome: 'delivered' });
  expect(found).not.toHaveProperty('isAbsent');
});

test.each([
  { status: 503, code: 'SlowDown' },
  { status: 409, code: 'ConditionalRequestConflict' },
  { status: 403, code: 'AccessDenied' },
  { status: 301, code: 'PermanentRedirect' },
])('an answer $status has the batch fail', async (refusal) => {
  const { server, sending, target } = await open();
  server.refuse(refusal);
  expect(await target.deliverBatch(sending, batchOf('one\n'))).toMatchObject({ outcome: 'failed' });
  expect(server.objects.size).toBe(0);
});

test('a wrong secret is refused by the judge, so the judge judges', async () => {
  const { sending, target } = await open({ secretAccessKey: 'another' });
  expect(await target.deliverBatch(sending, batchOf('one\n'))).toMatchObject({ outcome: 'failed' });
});

test('a manifest is written once; where the bucket has another one of the day, beside it', async () => {
  const { server, sending, target } = await open();
  const manifest = (text: string) => ({ day: '2026-11-23', changes: 0, text, sha256: sumOf(text) });
  const folder = `annals/${id}/date=2026-11-23`;
  for (const text of ['{}', '{}', '{"a":1}', '{"a":1}']) {
    expect(await target.objects?.deliverManifest(sending, manifest(text))).toMatchObject({ outcome: 'delivered' });
  }
  expect([...server.objects.keys()]).toEqual([
    `${folder}/manifest.json`,
    `${folder}/manifest-${sumOf('{"a":1}').slice(0, 16)}.json`,
  ]);
});

test('a sample says that it is one, and each test writes its own', async () => {
  let now = Date.UTC(2026, 10, 23, 12);
  const { server, sending, target } = await open({}, () => now);
  for (const _time of [1, 2]) {
    expect(await target.test(sending)).toMatchObject({ outcome: 'delivered' });
    now += 1;
  }
  expect(server.requests).toEqual([...server.objects.keys()].map((name) => `PUT ${name} 200`));
  expect(server.objects.size).toBe(2);
  for (const [name, { body, metadata }] of server.objects) {
    expect(name).toMatch(new RegExp(`^annals/${id}/test-[0-9a-f]{16}\\.json$`));
    expect(String(body)).toContain('"sample":true');
    expect(metadata).toEqual({ 'annals-sha256': sumOf(String(body)), 'annals-changes': '0' });
  }
});

test('a 412 is delivered only where the sample is there: not where the name has another object, and not where it has none', async () => {
  const { server, sending, target } = await open();
  server.refuse({ status: 412, code: 'PreconditionFailed' });
  const nothingThere = {
    outcome: 'failed',
    status: 412,
    error: expect.stringMatching(/as if it were there \(412\), and has none of this name: annals\/.*If-None-Match/),
  };
  expect(await target.test(sending)).toMatchObject(nothingThere);
  server.refuse({ status: 412, code: 'PreconditionFailed' });
  expect(await target.deliverBatch(sending, batchOf('one\n'))).toMatchObject(nothingThere);
  // Without s3:ListBucket S3 answers 403 for a missing object.
  server.refuse({ status: 412, code: 'PreconditionFailed' }, { status: 403, code: 'AccessDenied' });
  expect(await target.test(sending)).toMatchObject({
    outcome: 'failed',
    status: 403,
    error: 'The existing object cannot be read: allow s3:GetObject and s3:ListBucket.',
  });
  expect(server.objects.size).toBe(0);
  expect(await target.test(sending)).toMatchObject({ outcome: 'delivered' });
  // The same sample again, as after an answer that was lost.
  expect(await target.test(sending)).toMatchObject({ outcome: 'delivered' });
  const [name = ''] = server.objects.keys();
  server.objects.set(name, { body: Buffer.from('?'), contentType: undefined, metadata: {} });
  expect(await target.test(sending)).toMatchObject({
    outcome: 'suspended',
    error: `The bucket has another object of this name: ${name}`,
  });
});

test('a store without If-None-Match gets nothing, and the sample and the batch say which setting accepts it', async () => {
  const { server, sending, target } = await open({}, undefined, { isUnconditional: true });
  const refusal = {
    outcome: 'failed',
    status: 501,
    error: expect.stringMatching(/501.*If-None-Match.*ANNALS_S3_UNCONDITIONAL/),
  };
  expect(await target.test(sending)).toMatchObject(refusal);
  expect(await target.deliverBatch(sending, batchOf('one\n'))).toMatchObject(refusal);
  expect(server.objects.size).toBe(0);
});

test('where the operator accepts such a store, an object is looked for before it is written, and never written twice', async () => {
  const { server, sending, target } = await open({}, undefined, { isUnconditional: true, isAccepted: true });
  expect(await target.test(sending)).toMatchObject({ outcome: 'delivered' });
  server.requests.length = 0;
  for (const _time of [1, 2])
    expect(await target.deliverBatch(sending, batchOf('one\n'))).toMatchObject({ outcome: 'delivered' });
  expect(server.requests).toEqual([`HEAD ${key} 404`, `PUT ${key} 200`, `HEAD ${key} 200`]);
  expect(await target.deliverBatch(sending, batchOf('two\n'))).toMatchObject({ outcome: 'suspended' });
  expect(gunzipSync(server.objects.get(key)?.body ?? '').toString()).toBe('one\n');
});

test('s3rver, an S3 server from npm, takes an object with its metadata', async () => {
  const directory = temporaryFolder();
  const s3rver = new S3rver({ directory, silent: true, configureBuckets: [{ name: 'history', configs: [] }] });
  const server = createServer(s3rver.callback()).listen(0, '127.0.0.1');
  onTestFinished(async () => {
    server.close();
  });
  await s3rver.configureBuckets();
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const endpoint = `http://127.0.0.1:${port}`;
  const keys = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };
  const { sending, target } = await open({ endpoint, ...keys }, Date.now);
  expect(await target.deliverBatch(sending, batchOf('one\n'))).toMatchObject({ outcome: 'delivered' });
  const found = await target.deliverBatch(sending, batchOf('', { hashes: [sumOf('one\n')] }));
  expect(found).not.toHaveProperty('isAbsent');
  expect(found).toMatchObject({ outcome: 'delivered' });
});
