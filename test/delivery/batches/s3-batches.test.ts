import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { trials } from '../../support/oracle/trials.ts';
import { startAnnals } from '../../support/server/command.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer, type TestServer } from '../../support/server/server.ts';
import { recordUpdates, subscriptionsOf } from '../../support/server/subscriptions.ts';
import { startS3Server } from '../../support/vendor/s3-server.ts';

const key = Buffer.alloc(32, 9);
const rounds = trials(1);
const noon = Date.UTC(2026, 10, 23, 12);
const day = 86_400_000;

let now = noon;

const bucket = closeAfterAll(await startS3Server());

async function start(environment: Record<string, string>): Promise<TestServer> {
  return await startTestServer({ environment, secretKeys: [key], clock: { now: () => now } });
}

const allowed = { ANNALS_DELIVERY_ALLOW: ['acme', 'globex', 'initech'].map((one) => `${one}=127.0.0.0/8`).join() };

/** With a new token: those of before may have expired by the clock of the tests. */
async function subscriptionsIn(server: TestServer, tenant: string) {
  return subscriptionsOf(server, tenant, await server.token(tenant));
}

type Subscriptions = ReturnType<typeof subscriptionsOf>;

async function makeSubscription(of: Subscriptions, members: object = {}): Promise<string> {
  const { region, url: endpoint, accessKeyId, secretAccessKey } = bucket;
  const s3 = { type: 's3', endpoint, region, bucket: bucket.bucket, accessKeyId, secretAccessKey, maxSeconds: 0 };
  return (await of.make({ q: 'entity:product', target: { ...s3, ...members } })).id;
}

/** The objects of a subscription: names below its folder, and what batches have. */
function stored(id: string) {
  const mine = [...bucket.objects].filter(([name]) => name.startsWith(`${id}/`));
  const batches = mine.filter(([name]) => name.endsWith('.ndjson.gz'));
  const texts = batches.map(([name, { body }]) => ({ name, text: gunzipSync(body).toString() }));
  const items = texts.flatMap(({ text }) =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { entityId: string }),
  );
  return { names: mine.map(([name]) => name.slice(id.length + 1)), texts, ids: items.map(({ entityId }) => entityId) };
}

function manifestOf(id: string, date: string) {
  const body = bucket.objects.get(`${id}/date=${date}/manifest.json`)?.body;
  return body === undefined
    ? undefined
    : (JSON.parse(String(body)) as { changes: number; objects: { key: string; sha256: string; changes: number }[] });
}

test(`killed ${3 * rounds} times between an upload and its note, over the ends of days: no object twice, no change missing, and true manifests`, async () => {
  const server = await start({ ...allowed, ANNALS_DELIVERIES: 'off' });
  onTestFinished(() => server.close());
  const acme = await subscriptionsIn(server, 'acme');
  const id = await makeSubscription(acme, { maxChanges: 2 });
  const environment = {
    ...allowed,
    DATABASE_URL: server.database.url,
    ANNALS_SECRET_KEY: key.toString('base64'),
    NODE_OPTIONS: '',
  };
  const startService = () => startAnnals(['serve'], { PORT: '0', ...environment });
  let service = startService();
  onTestFinished(async () => {
    service.process.kill('SIGKILL');
    await service.ended;
  });
  await service.firstLine;
  /** Nobody kills the last one. */
  const deliverHere = async (ahead: number) => {
    const clock = { now: () => Date.now() + ahead };
    const options = { environment: allowed, secretKeys: [key], clock, database: server.database };
    const last = await startTestServer(options);
    onTestFinished(() => last.close());
  };
  const killed: string[] = [];
  /** So many times the process that has stored the next object dies before it can note that, and its lease ends. */
  const killAtUploads = (count: number, done: () => void): void =>
    bucket.onceStored(async () => {
      killed.push([...bucket.objects.keys()].at(-1) ?? '');
      if (count > 1) killAtUploads(count - 1, done);
      service.process.kill('SIGKILL');
      await service.ended;
      if (count === 1 && expected.length === 5 * rounds) await deliverHere(rounds * day);
      else service = startService();
      await server.database.pool.query('update subscription_state set held_until = now()');
      if (count === 1) done();
    });
  const expected: string[] = [];
  for (let round = 1; round <= rounds; round++) {
    const { promise, resolve } = Promise.withResolvers<void>();
    // The first batch is begun on a day, and its process dies. For the next ones that day is over: they repeat the
    // batch, write the manifest, and begin the second batch.
    environment.NODE_OPTIONS = clockAhead(round * day);
    killAtUploads(3, resolve);
    const documents = Array.from({ length: 5 }, (_none, index) => `killed-${round}-${index}`);
    expected.push(...documents);
    await recordUpdates(server, 'acme', documents);
    await promise;
    await eventually(() => acme.counts(id)).toMatchObject({
      matched: expected.length,
      delivered: expected.length,
      isWhole: true,
    });
  }
  expect(killed.map((name) => name.replace(/^.*\/(?:\d+-\d+)?/, ''))).toEqual(
    Array.from({ length: rounds }, () => ['.ndjson.gz', 'manifest.json', '.ndjson.gz']).flat(),
  );
  expect(stored(id).ids).toEqual(expected);
  const puts = bucket.requests.filter((line) => line.startsWith('PUT') && line.includes(id));
  // Each kill left an object that its repeat found.
  expect(puts.filter((line) => line.endsWith(' 412'))).toHaveLength(killed.length);
  const manifests = stored(id).names.filter((name) => name.includes('manifest'));
  expect(manifests).toHaveLength(rounds);
  for (const name of manifests) {
    const date = name.slice('date='.length, -'/manifest.json'.length);
    const ofDay = stored(id).texts.filter(({ name: one }) => one.startsWith(`${id}/date=${date}/`));
    const sums = ofDay.map(({ name: one, text }) => [one, createHash('sha256').update(text).digest('hex')]);
    expect(manifestOf(id, date)?.objects.map(({ key: one, sha256 }) => [one, sha256])).toEqual(sums);
  }
});

/** Options of Node that put the clock of a process forward by so many milliseconds. */
function clockAhead(milliseconds: number): string {
  const text = `const now = Date.now; Date.now = () => now() + ${milliseconds};
    globalThis.Date = new Proxy(Date, { construct: (target, given) => new target(...(given.length ? given : [target.now()])) });`;
  return `--import data:text/javascript,${encodeURIComponent(text)}`;
}

describe('a service whose clock the test sets', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await start(allowed);
  });
  beforeEach(() => {
    now = noon;
  });
  afterAll(() => server.close());

  test('each UTC day has a manifest when it is over, with its objects and their sums; an empty day an empty one', async () => {
    const acme = await subscriptionsIn(server, 'acme');
    const id = await makeSubscription(acme, { maxChanges: 3 });
    await recordUpdates(server, 'acme', ['a', 'b', 'c', 'd']);
    await eventually(() => acme.counts(id)).toMatchObject({ delivered: 4 });
    expect(stored(id).names.filter((name) => name.includes('manifest'))).toEqual([]);
    now += 2 * day;
    await server.database.pool.query('update subscription_state set due_at = now()');
    await eventually(() => manifestOf(id, '2026-11-24')).toBeDefined();
    await recordUpdates(server, 'acme', ['e']);
    const later = await subscriptionsIn(server, 'acme');
    await eventually(() => later.counts(id)).toMatchObject({ delivered: 5, isWhole: true });
    const first = manifestOf(id, '2026-11-23');
    expect(first?.changes).toBe(4);
    expect(first?.objects.map(({ changes }) => changes)).toEqual([3, 1]);
    for (const object of first?.objects ?? []) {
      const text = gunzipSync(bucket.objects.get(object.key)?.body ?? '');
      expect(object.sha256).toBe(createHash('sha256').update(text).digest('hex'));
    }
    expect(manifestOf(id, '2026-11-24')).toMatchObject({ changes: 0, objects: [] });
    expect(manifestOf(id, '2026-11-25')).toBeUndefined();
    expect(stored(id).names.at(-1)).toMatch(/^date=2026-11-25\/\d+-\d+\.ndjson\.gz$/);
  });

  test('a day has no manifest before its last batch has arrived, and then a true one', async () => {
    const globex = await subscriptionsIn(server, 'globex');
    const id = await makeSubscription(globex);
    bucket.refuse({ status: 503, code: 'SlowDown' });
    await recordUpdates(server, 'globex', ['late']);
    await eventually(() => globex.get(id)).toMatchObject({ state: 'retrying', pending: 1 });
    now += day;
    const later = await subscriptionsIn(server, 'globex');
    await later.call('POST', `/${id}/resume`);
    await eventually(() => manifestOf(id, '2026-11-23')).toMatchObject({ changes: 1 });
    expect(stored(id).ids).toEqual(['late']);
    expect(stored(id).names[0]).toMatch(/^date=2026-11-23\//);
  });

  test('another object of the name of a batch suspends the subscription, which says so', async () => {
    const initech = await subscriptionsIn(server, 'initech');
    const id = await makeSubscription(initech);
    const { rows } = await server.database.pool.query<{ position: string }>(
      'select position from subscription_state where subscription = $1',
      [id],
    );
    const next = Number(rows[0]?.position) + 1;
    // The subscription's own change takes a position, too.
    for (const position of [next, next + 1]) {
      const name = `${id}/date=2026-11-23/${position}-${position}.ndjson.gz`;
      bucket.objects.set(name, { body: Buffer.from('?'), contentType: undefined, metadata: {} });
    }
    await recordUpdates(server, 'initech', ['foreign']);
    await eventually(() => initech.get(id)).toMatchObject({ state: 'suspended', pending: 1 });
    expect((await initech.get(id)).lastError?.message).toContain('another object');
  });
});
