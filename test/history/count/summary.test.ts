import { expect, test } from 'vitest';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf } from '../../support/server/history.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const day = 86_400_000;

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const token = await server.token('acme', { scope: 'changelog.changelog_read' });
await createRecorder(
  server.context.db,
  'acme',
  () => now,
)([
  changeOf({ at: now - 40 * day, actor: 'too old' }),
  changeOf({ at: now - 2 * day, type: 'create', actor: 'Zoë' }),
  changeOf({ at: now - day, actor: 'a' }),
  changeOf({ at: now - day, actor: '\u{1F600}' }),
  changeOf({ at: now - day, actor: '\uE000' }),
  changeOf({ at: now, type: 'delete', actor: 'Zoë', entity: 'site' }),
  changeOf({ at: now + 1, actor: 'a', entity: 'quote' }),
]);

async function ask(target: string): Promise<{ status: number; body: unknown }> {
  const response = await server.call(`/changelog/acme/${target}`, { token });
  return { status: response.status, body: await response.json() };
}

function violation(field: string, message: string) {
  return { status: 400, body: { status: 400, type: 'validation_violation', message, details: [{ field, message }] } };
}

test('a histogram begins at the oldest match, has empty buckets, and counts future entries separately', async () => {
  const bucket = (at: string, counts: object) => ({ at, count: 0, create: 0, update: 0, delete: 0, ...counts });
  expect(await ask('histogram?buckets=3')).toEqual({
    status: 200,
    body: {
      from: '2026-09-13T10:11:12.345Z',
      to: '2026-09-15T10:11:12.345Z',
      interval: { unit: 'day', count: 1 },
      totalElements: 6,
      buckets: [
        bucket('2026-09-13T00:00:00.000Z', { count: 1, create: 1 }),
        bucket('2026-09-14T00:00:00.000Z', { count: 3, update: 3 }),
        bucket('2026-09-15T00:00:00.000Z', { count: 1, delete: 1 }),
      ],
      after: 1,
    },
  });
});

test('with a time zone, days begin at local midnight; an unknown zone is 400', async () => {
  expect((await ask('histogram?buckets=3&timeZone=Pacific/Kiritimati')).body).toMatchObject({
    totalElements: 6,
    interval: { unit: 'day', count: 1 },
    buckets: [
      { at: '2026-09-13T10:00:00.000Z', count: 1 },
      { at: '2026-09-14T10:00:00.000Z', count: 3 },
      { at: '2026-09-15T10:00:00.000Z', count: 1 },
    ],
    after: 1,
  });
  const message = 'timeZone must be an IANA time zone, such as Europe/Berlin';
  for (const zone of ['Mars/Olympus', '', '%2B02:00'])
    expect(await ask(`histogram?timeZone=${zone}`)).toEqual(violation('timeZone', message));
});

test('a histogram has the bounds of its query', async () => {
  const q = encodeURIComponent('occurredAt:(>="2026-09-14T00:00:00Z" AND <"2026-09-14T12:00:00Z")');
  expect((await ask(`histogram?q=${q}&buckets=1`)).body).toMatchObject({
    from: '2026-09-14T10:11:12.345Z',
    to: '2026-09-14T12:00:00.000Z',
    interval: { unit: 'hour', count: 2 },
    buckets: [{ at: '2026-09-14T10:00:00.000Z', count: 3 }],
    after: 0,
  });
});

test('a histogram without a match has the window of its query', async () => {
  const { body } = await ask('histogram?q=entity:nobody');
  expect(body).toMatchObject({ from: '2026-08-16T10:11:12.345Z', to: '2026-09-15T10:11:12.345Z', totalElements: 0 });
  for (const q of ['occurredAt:<"0000-01-01T00:00:00+23:00"', 'occurredAt:>"9999-12-31T23:59:59-23:00"']) {
    expect(await ask(`histogram?q=${encodeURIComponent(q)}`)).toMatchObject({
      status: 200,
      body: { totalElements: 0 },
    });
  }
});

test('facets list the values with the most entries, ties by code point, and count the others', async () => {
  expect(await ask('facets?field=actor&size=3')).toEqual({
    status: 200,
    body: {
      field: 'actor',
      totalElements: 6,
      values: [
        { value: 'Zoë', count: 2 },
        { value: 'a', count: 2 },
        { value: '\uE000', count: 1 },
      ],
      others: 1,
    },
  });
  expect((await ask('facets?field=entity&q=entity:(site,quote)')).body).toEqual({
    field: 'entity',
    totalElements: 2,
    values: [
      { value: 'quote', count: 1 },
      { value: 'site', count: 1 },
    ],
    others: 0,
  });
});

test.each([
  ['histogram', 'buckets', 500],
  ['facets?field=type', 'size', 100],
])('%s: %s is 1 to %d', async (operation, name, most) => {
  const separator = operation.includes('?') ? '&' : '?';
  for (const value of [1, most]) expect((await ask(`${operation}${separator}${name}=${value}`)).status).toBe(200);
  for (const value of ['0', String(most + 1), '1.0', '%2B1', '', 'x']) {
    expect(await ask(`${operation}${separator}${name}=${value}`)).toEqual(
      violation(name, `${name} must be between 1 and ${most}`),
    );
  }
});

test('an unknown facet field is 400, and so is a missing one', async () => {
  const message = 'field must be one of entity, type, actor, actorId, onBehalfOf, path, context.<name>';
  for (const field of ['entityId', '', 'Actor'])
    expect(await ask(`facets?field=${field}`)).toEqual(violation('field', message));
  expect(await ask('facets')).toEqual(violation('field', 'field is required'));
});
