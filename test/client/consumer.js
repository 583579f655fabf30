// What an application does with the packed client, in the oldest Node that the client runs on: plain JavaScript, no Annals
// beside it. Prints one line of JSON.
import { Annals, ApiError } from '@annals/client';
import { parseJson, stringifyJson } from '@annals/client/json';
import { and, changeType, entity } from '@annals/client/query';

const {
  ANNALS_URL: baseUrl,
  ANNALS_CLIENT_ID: clientId,
  ANNALS_CLIENT_SECRET: clientSecret,
  ANNALS_TENANT: tenant,
} = process.env;
const annals = new Annals({ baseUrl, tenant, clientId, clientSecret });
const type = `TRIED_${process.versions.node.split('.')[0]}`;

await annals.customEntities.put(type, { name: { en: 'Tried' } });
const instances = annals.exact.instances(type);
for (let number = 1; number <= 5; number += 1) await instances.put(`i-${number}`, parseJson('{"10":1.10,"2":-0}'));

const entries = [];
for await (const entry of annals.history.list({ q: and(entity(type), changeType('create')), size: 2 }))
  entries.push(entry.entityId);

const { jobId } = await annals.jobs.export({ q: entity(type), format: 'NDJSON' });
const { metadata } = await annals.jobs.wait(jobId);
let exported = 0;
for await (const _ of annals.jobs.entries(jobId)) exported += 1;

const refused = await annals.history.list({ q: 'nonsense:1' }).catch((error) => error);
const exact = stringifyJson((await instances.get('i-1')).get('10'));
const line = {
  node: process.versions.node,
  entries,
  exact,
  exported,
  expected: metadata.entries,
  error: refused instanceof ApiError && refused.type,
};
process.stdout.write(`${JSON.stringify(line)}\n`);
