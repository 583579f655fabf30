import { afterAll, beforeAll, expect, test } from 'vitest';
import { readRecorders } from '../../../src/history/names/recorder-store.ts';
import { foldHistory } from '../../../src/history/tallies/fold.ts';
import { scopes } from '../../../src/http/scopes.ts';
import type { Browser } from '../../support/server/browser.ts';
import { type Call, contentOf, endOfJob, startExport } from '../../support/server/jobs.ts';
import { PeopleServer, rulesOf } from '../../support/server/people.ts';

let people: PeopleServer;

beforeAll(async () => {
  people = await PeopleServer.start(rulesOf({ claims: { groups: 'all' }, tenants: ['acme'], scopes }));
  people.provider.claims = { sub: 'u-1 "quoted"', name: 'Jane Doe', groups: ['all'] };
  await people.server.createTenant('acme');
});

afterAll(() => people.close());

type Step = readonly [operation: string, method: string, path: string, body?: unknown];

const type = '/schema/acme/custom-entities';
const instance = `${type}/CLAIM/instances`;
const configuration = '/configuration/acme/configurations';
const agent = '/ai-service/acme/agentic/agents/desk';
const llmConfig = { provider: 'openai', model: 'gpt-5.4-mini', apiKey: 'sk-secret' };
const target = { type: 'webhook', url: 'https://receiver.example/hook' };

/** Every operation that writes a document, so that it records one change. `made` is the id that the step before it was answered. */
const writes = (made: string): readonly Step[] => [
  ['createCustomEntityType', 'POST', type, { id: 'CLAIM', name: { en: 'Claim' } }],
  ['putCustomEntityType', 'PUT', `${type}/CLAIM`, { name: { en: 'Claims' } }],
  ['createInstance', 'POST', instance, { id: 'c1', amount: 1 }],
  ['putInstance', 'PUT', `${instance}/c1`, { amount: 2 }],
  ['patchInstance', 'PATCH', `${instance}/c1`, [{ op: 'replace', path: '/amount', value: 3 }]],
  ['deleteInstance', 'DELETE', `${instance}/c1`],
  ['deleteCustomEntityType', 'DELETE', `${type}/CLAIM`],
  ['createConfigurations', 'POST', configuration, [{ key: 'k', value: 1 }]],
  ['replaceConfiguration', 'PUT', `${configuration}/k`, { value: 2 }],
  ['deleteConfiguration', 'DELETE', `${configuration}/k`],
  ['putAgent', 'PUT', agent, { name: { en: 'Desk' }, llmConfig }],
  ['patchAgent', 'PATCH', agent, [{ op: 'replace', path: '/name/en', value: 'Other desk' }]],
  ['deleteAgent', 'DELETE', agent],
  ['createView', 'POST', '/changelog/acme/views', { name: 'Mine', q: 'entity:order' }],
  ['putView', 'PUT', `/changelog/acme/views/${made}`, { name: 'Ours', q: 'entity:order' }],
  ['deleteView', 'DELETE', `/changelog/acme/views/${made}`],
  ['createSubscription', 'POST', '/changelog/acme/subscriptions', { name: 'Out', target }],
  ['putSubscription', 'PUT', `/changelog/acme/subscriptions/${made}`, { name: 'Out there', target }],
  ['rotateSubscriptionKey', 'POST', `/changelog/acme/subscriptions/${made}/rotate`],
  ['deleteSubscription', 'DELETE', `/changelog/acme/subscriptions/${made}`],
];

/** Those that write no document, so that they record nothing. */
const recordNothing = [
  ...['chat', 'chatAsync', 'chatStream', 'createCompletion', 'createJob', 'createViewerToken'],
  ...['deleteJob', 'deleteParkedChanges'],
  ...['issueToken', 'pauseSubscription', 'replaySubscription', 'resumeSubscription', 'testSubscription'],
];

async function send(browser: Browser, path: string, method: string, body: unknown): Promise<string> {
  const answer = await browser.call(`/console/api${path}`, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  expect([method, path, answer.status, text]).toEqual([method, path, expect.toSatisfy(isSuccess), text]);
  return text;
}

const isSuccess = (status: number) => status >= 200 && status < 300;

/** The changes of the tenant, the newest first, with how they were recorded. */
async function recorded(token: string) {
  const path = '/changelog/acme/changelogs?size=100&context=true';
  const answer = await people.server.call(path, { token });
  const { items } = (await answer.json()) as { items: { actor: string; recordedBy: object }[] };
  return items;
}

test('whatever a person writes bears their name, and recordedBy holds what the provider knows them by', async () => {
  const { server, provider } = people;
  const { paths } = JSON.parse(server.app.openApiText()) as {
    paths: Record<string, Record<string, { operationId?: string }>>;
  };
  const operations = Object.values(paths).flatMap((path) =>
    Object.entries(path).flatMap(([method, { operationId }]) =>
      method === 'get' || operationId === undefined || /^search/.test(operationId) ? [] : [operationId],
    ),
  );
  expect([...writes('').map(([operation]) => operation), ...recordNothing].sort()).toEqual(operations.sort());

  const { browser } = await people.signIn();
  let made = '';
  for (const place of writes('').keys()) {
    const [operation, method, path, body] = writes(made)[place] ?? [];
    const text = await send(browser, path ?? '', method ?? '', body);
    if (operation === 'createView' || operation === 'createSubscription') made = JSON.parse(text).id;
  }
  const token = await server.token('acme', { scope: scopes.join(' ') });
  const shown = await recorded(token);
  const by = { way: 'service', iss: provider.issuer, sub: 'u-1 "quoted"' };
  expect(shown.map(({ actor, recordedBy }) => ({ actor, recordedBy }))).toEqual(
    writes('').map(() => ({ actor: 'Jane Doe', recordedBy: by })),
  );
  const call: Call = (path, init = {}) => server.call(path, { token, ...init });
  for (const [format, text] of [
    ['NDJSON', JSON.stringify(by)],
    ['CSV', `"${JSON.stringify(by).replaceAll('"', '""')}"`],
  ] as const) {
    const job = await startExport(call, 'acme', { q: 'actor:"Jane Doe"', format, context: true });
    await endOfJob(call, 'acme', job);
    expect((await contentOf(call, 'acme', job)).split(text)).toHaveLength(writes('').length + 1);
  }

  // A client that writes is not told apart from the service, and of a person nobody is told without the context.
  const answer = await server.call(configuration, {
    token,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([{ key: 'by a client', value: 1 }]),
  });
  expect(answer.status).toBe(201);
  expect((await recorded(token))[0]?.recordedBy).toEqual({ way: 'service' });
  const plain = await server.call('/changelog/acme/changelogs?size=100', { token });
  expect(await plain.text()).not.toContain('u-1');

  // The list of recorders has the service once, however many people write, folded or not.
  const ways = async () =>
    (await readRecorders(server.database.db, 'acme')).recorders.map(({ way, by: name }) => [way, name]);
  expect(await ways()).toEqual([['service', null]]);
  await foldHistory(server.database.db, 'acme');
  expect(await ways()).toEqual([['service', null]]);
});
