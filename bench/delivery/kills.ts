import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { createRecorder } from '../../src/recording/record-change.ts';
import { changeOf } from '../../test/support/server/history.ts';
import { startServices } from '../../test/support/server/service-processes.ts';
import { startMailServer } from '../../test/support/vendor/mail-server.ts';
import { startReceiver } from '../../test/support/vendor/receiver.ts';
import { startS3Server } from '../../test/support/vendor/s3-server.ts';
import { startSplunkServer } from '../../test/support/vendor/splunk-server.ts';
import { benchFolder, makeTenant, openBenchServer } from '../server.ts';
import { environmentOf, tokenOf } from '../service.ts';

// Deliveries of every kind while PostgreSQL and two processes of the service are killed with kill -9, in turn and
// together.
const { values: settings } = parseArgs({ options: { kills: { type: 'string', default: '12' } } });
const tenant = 'acme';
const scope = 'changelog.changelog_read changelog.subscription_read changelog.subscription_manage';

interface Item {
  readonly position: number;
  readonly entityId: string;
}

const receiver = await startReceiver();
receiver.answer = (_received, response) => void setTimeout(() => response.writeHead(204).end(), Math.random() * 30);
const { origin } = new URL(receiver.url);
const [bucket, splunk, mails] = [await startS3Server(), await startSplunkServer(), await startMailServer()];

const server = await openBenchServer(`${benchFolder}-kills`);
const { url, pool, db, drop } = await server.create({ connections: 2 });
const client = await makeTenant(db, tenant, scope);
const services = await startServices(2, {
  ...environmentOf(url),
  ANNALS_DELIVERY_ALLOW: `${tenant}=127.0.0.0/8`,
  ANNALS_BASE_URL: 'https://history.example',
  SMTP_URL: mails.url,
  MAIL_FROM: 'Annals <annals@shop.example>',
  LOG_LEVEL: 'fatal',
});

/** Calls one of the services until it answers. */
async function call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  for (let tries = 0; ; tries += 1) {
    try {
      const baseUrl = await services.next();
      const response = await fetch(`${baseUrl}/changelog/${tenant}/subscriptions${path}`, {
        method,
        headers: {
          authorization: `Bearer ${await tokenOf(baseUrl, client)}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${response.status} ${text}`);
      return JSON.parse(text) as Record<string, unknown>;
    } catch (error) {
      if (tries > 30) throw error;
      await sleep(300);
    }
  }
}

const { region, accessKeyId, secretAccessKey, bucket: bucketName, url: endpoint } = bucket;
const targets: Readonly<Record<string, object>> = {
  webhook: { type: 'webhook', url: `${origin}/webhook`, concurrency: 8 },
  http: { type: 'http', url: `${origin}/http`, gzip: true, maxChanges: 7, maxSeconds: 1 },
  s3: { type: 's3', endpoint, region, bucket: bucketName, accessKeyId, secretAccessKey, maxChanges: 20, maxSeconds: 1 },
  splunk: { type: 'splunk', url: splunk.url, token: splunk.token, index: 'audit', maxChanges: 15, maxSeconds: 1 },
  email: { type: 'email', to: 'jane@shop.example' },
};
for (const [id, target] of Object.entries(targets)) await call('POST', '', { id, name: id, q: 'entity:order', target });

let isWriting = true;
let made = 0;
const record = createRecorder(db, tenant, Date.now);
const writing = (async () => {
  while (isWriting) {
    const count = 1 + Math.floor(Math.random() * 12);
    const changes = Array.from({ length: count }, () => {
      made += 1;
      return changeOf({ at: Date.now(), entity: 'order', entityId: `${made}` });
    });
    await record(changes).catch(() => {});
    await sleep(40);
  }
})();

const kills = Number(settings.kills);
for (let kill = 0; kill < kills; kill += 1) {
  await sleep(1_500 + Math.random() * 1_500);
  const kind = kill % 4;
  if (kind === 0) await server.kill();
  else if (kind === 1) await Promise.all([services.replace(0), services.replace(1)]);
  else if (kind === 2) await services.replace(0);
  else await Promise.all([server.kill(), services.replace(1)]);
}
isWriting = false;
await writing;

const { rows } = await pool.query<{ id: string }>(
  `select e.entity_id as id from change_entry e
     join change_kind k on k.tenant = e.tenant and k.kind = e.kind where e.tenant = $1 and k.entity = 'order'`,
  [tenant],
);
const recorded = rows.map(({ id }) => id);
const states: Record<string, Record<string, unknown>> = {};
for (let tries = 0; tries < 300; tries += 1) {
  for (const id of Object.keys(targets)) states[id] = await call('GET', `/${id}`);
  if (Object.values(states).every(({ delivered, pending }) => delivered === recorded.length && pending === 0)) break;
  await sleep(500);
}

const faults: string[] = [];
const lines = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Item);

/** Every change arrived; if the order is strict, none came for the first time before an earlier one. */
function check(kind: string, items: readonly Item[], isStrict: boolean): void {
  const seen = new Set(items.map(({ entityId }) => entityId));
  const missing = recorded.filter((id) => !seen.has(id));
  if (missing.length > 0) faults.push(`${kind}: ${missing.length} missing, ${missing.slice(0, 5)}`);
  let last = 0;
  const positions = new Set<number>();
  for (const { position } of items) {
    if (positions.has(position)) continue;
    positions.add(position);
    if (isStrict && position < last) faults.push(`${kind}: ${position} came after ${last}`);
    last = Math.max(last, position);
  }
}

const webhooks = receiver.received.filter(({ path }) => path === '/webhook');
const webhookItems = webhooks.map(({ body }) => (JSON.parse(body) as { data: Item }).data);
check('webhook', webhookItems, false);
const idOf = new Map<number, string>();
for (const [index, { position }] of webhookItems.entries()) {
  const id = String(webhooks[index]?.headers['webhook-id']);
  if ((idOf.get(position) ?? id) !== id) faults.push(`webhook: ${position} came under two ids`);
  idOf.set(position, id);
}
if (new Set(idOf.values()).size !== idOf.size) faults.push('webhook: two changes have one id');

const batches = receiver.received.filter(({ path }) => path === '/http');
const textOf = new Map<string, string>();
for (const { headers, body } of batches) {
  const key = String(headers['idempotency-key']);
  const text = `${headers['annals-first']} ${headers['annals-last']} ${body}`;
  if ((textOf.get(key) ?? text) !== text) faults.push(`http: ${key} came with two texts`);
  textOf.set(key, text);
}
check(
  'http',
  batches.flatMap(({ body }) => lines(body)),
  true,
);

const objects = [...bucket.objects].filter(([name]) => name.endsWith('.ndjson.gz'));
const objectItems = objects.flatMap(([, { body }]) => lines(String(gunzipSync(body))));
check('s3', objectItems, false);
if (objectItems.length !== recorded.length) faults.push(`s3: ${objectItems.length - recorded.length} twice`);
const events = splunk.accepted.map(({ event }) => event as Item);
check('splunk', events, true);
for (const [id, { delivered, matched, state }] of Object.entries(states)) {
  if (matched !== recorded.length || delivered !== recorded.length)
    faults.push(`${id}: ${state}, matched ${matched}, delivered ${delivered}`);
}
// An e-mail that comes twice bears the same id. One rule sends one in 10 minutes.
const alerts = mails.all().map(({ message }) => /^message-id:\s*(\S+)/im.exec(message)?.[1]);
if (new Set(alerts).size !== 1) faults.push(`email: ${alerts}`);

process.stdout.write(
  `${JSON.stringify({
    kills,
    changes: recorded.length,
    webhook: { calls: webhooks.length, twice: webhooks.length - idOf.size },
    http: { requests: batches.length, repeated: batches.length - textOf.size },
    s3: { objects: objects.length, requests: bucket.requests.length },
    splunk: { events: events.length, twice: events.length - new Set(events.map(({ entityId }) => entityId)).size },
    email: { alerts: alerts.length },
    faults,
  })}\n`,
);
await services.end();
await drop();
await server.release();
process.exit(faults.length === 0 ? 0 : 1);
