import { expect, test } from 'vitest';
import { createRecorder } from '../../src/recording/record-change.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { changeOf } from '../support/server/history.ts';
import { startTestServer } from '../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const hour = 3_600_000;
const tenant = 'acme';

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const token = await server.token(tenant);
await createRecorder(
  server.context.db,
  tenant,
  () => now,
)(
  Array.from({ length: 20 }, (_none, index) =>
    changeOf({ at: now - index * hour, entity: index % 2 === 0 ? 'order' : 'site', entityId: `d${index}` }),
  ),
);

async function timingOf(operation: string, parameters: Record<string, string>): Promise<string | null> {
  const response = await server.call(`/changelog/${tenant}/${operation}?${new URLSearchParams(parameters)}`, { token });
  expect({ operation, parameters, status: response.status }).toMatchObject({ status: 200 });
  await response.text();
  return response.headers.get('server-timing');
}

// So many distinct times that reading the few entries is faster.
const arms = Array.from({ length: 40 }, (_none, index) => {
  const [from, to] = [index + 2, index].map((hours) => new Date(now - hours * hour).toISOString());
  return `(entity:order occurredAt:(>="${from}" AND <"${to}"))`;
});

test.each([
  ['tallies', 'entity:order', 'tallies'],
  ['documents', 'entity:order entityId:d2', 'search'],
  ['search', 'entity:order entityId:~^d[24]$', 'search'],
  ['scan', `compoundLogicalQuery:(${arms.join(' OR ')})`, 'scan'],
  ['merged', 'compoundLogicalQuery:((entity:site) OR (entity:order entityId:d2))', 'merged'],
])('Server-Timing shows how a query was answered: %s', async (list, q, counts) => {
  expect(await timingOf('changelogs', { q })).toMatch(new RegExp(`^${list};dur=\\d+\\.\\d$`));
  expect(await timingOf('histogram', { q })).toMatch(new RegExp(`^${counts};dur=\\d+\\.\\d$`));
  for (const field of ['entity', 'type', 'actor']) {
    expect(await timingOf('facets', { q, field })).toMatch(new RegExp(`^${counts};dur=\\d+\\.\\d$`));
  }
});

test('a document and a single change have it too; names and recorders count nothing and have none', async () => {
  expect(await timingOf('documents', { entity: 'order', entityId: 'd2' })).toMatch(/^documents;dur=/);
  const list = await server.call(`/changelog/${tenant}/changelogs?ref=true&size=1`, { token });
  const { items } = (await list.json()) as { items: { ref: string }[] };
  expect(await timingOf('entries', { ref: items[0]?.ref ?? '' })).toMatch(/^search;dur=/);
  expect(await timingOf('names', { field: 'entity' })).toBeNull();
  expect(await timingOf('recorders', {})).toBeNull();
});
