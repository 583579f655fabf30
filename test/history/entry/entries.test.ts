import { expect, test } from 'vitest';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { changeOf } from '../../support/server/history.ts';
import { startTestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const token = await server.token(tenant);

interface Item {
  entityId: string;
  paths: Record<string, { before?: unknown; after?: unknown }>;
  ref?: string;
  cut?: string[];
}

async function ask(
  target: string,
  bearer = token,
  of = tenant,
): Promise<{ status: number; text: string; body: unknown }> {
  const response = await server.call(`/changelog/${of}/${target}`, { token: bearer });
  const text = await response.text();
  return { status: response.status, text, body: JSON.parse(text) };
}

async function list(parameters: string): Promise<Item[]> {
  const { status, body } = await ask(`changelogs?${parameters}`);
  expect(status).toBe(200);
  return (body as { items: Item[] }).items;
}

async function record(of: string, ...changes: Parameters<typeof changeOf>[0][]): Promise<void> {
  await createRecorder(server.context.db, of, () => now)(changes.map(changeOf));
}

test('a ref is stable and returns its entry byte for byte as in the list', async () => {
  const moment = { at: now - 1, entity: 'quote' };
  await record(
    tenant,
    {
      ...moment,
      entityId: 'one',
      paths: '{"n":{"before":1.10,"after":9007199254740993}}',
      context: '{"ip":"10.0.0.1"}',
    },
    { ...moment, entityId: 'two' },
  );
  expect((await list('q=entity:quote')).map(({ ref }) => ref)).toEqual([undefined, undefined]);
  for (const q of ['entity:quote', 'entity:quote entityId:(one,two)', 'entity:quote entityId:~.']) {
    for (const context of ['', '&context=true']) {
      const parameters = `ref=true${context}&q=${encodeURIComponent(q)}`;
      const items = await list(parameters);
      expect(items.map(({ entityId }) => entityId)).toEqual(['two', 'one']);
      expect(await list(parameters)).toEqual(items);
      const { text } = await ask(`changelogs?${parameters}`);
      for (const { ref = '' } of items) {
        const entry = await ask(`entries?ref=${ref}${context}`);
        expect(entry.status).toBe(200);
        expect(text).toContain(entry.text);
      }
    }
  }
  const reader = await server.token(tenant, { scope: 'changelog.changelog_read' });
  const [newest] = await list('ref=true&q=entity:quote');
  expect((await ask(`entries?ref=${newest?.ref}&context=true`, reader)).status).toBe(403);
  expect((await ask(`entries?ref=${newest?.ref}`, reader)).status).toBe(200);
});

test('a malformed ref or one of another tenant is 400; a dropped entry is 404', async () => {
  const otherToken = await server.token('other');
  for (const of of [tenant, 'other'])
    await record(of, { at: now - 40 * day, entity: 'dropped', identity: Buffer.alloc(16, 7) });
  const query = encodeURIComponent('entity:dropped occurredAt:>"2026-01-01T00:00:00Z"');
  const [{ ref = '' } = { ref: '' }] = await list(`ref=true&q=${query}`);
  expect((await ask(`entries?ref=${ref}`)).status).toBe(200);
  const message = 'ref is not a ref of a change of this tenant';
  const wrong = { status: 400, body: { type: 'validation_violation', message, details: [{ field: 'ref', message }] } };
  expect(await ask(`entries?ref=${ref}`, otherToken, 'other')).toMatchObject(wrong);
  for (const text of [
    '',
    'x',
    `${ref}=`,
    `${ref}A`,
    ref.slice(1),
    ref.replace(/.$/, (last) => (last === 'A' ? 'E' : 'A')),
  ]) {
    expect(await ask(`entries?ref=${text}`)).toMatchObject(wrong);
  }
  expect(await ask('entries')).toMatchObject({ status: 400, body: { details: [{ message: 'ref is required' }] } });
  const horizon = Math.floor(now / day - 30) * day;
  await record(tenant, { at: horizon, entity: 'oldest' });
  const [oldest] = await list(`ref=true&q=${encodeURIComponent('entity:oldest occurredAt:>"2026-01-01T00:00:00Z"')}`);
  const keep = 'insert into change_retention (tenant, horizon) values ($1, $2)';
  await server.database.pool.query(keep, [tenant, horizon]);
  expect(await ask(`entries?ref=${ref}`)).toMatchObject({ status: 404, body: { type: 'resource_not_found' } });
  expect((await ask(`entries?ref=${oldest?.ref}`)).status).toBe(200);
});

test('valueLimit cuts longer values and names their paths, in a list and in an entry', async () => {
  const [fits, tooLong] = ['x'.repeat(254), 'é'.repeat(150)];
  const paths = { 'a.b': { before: fits, after: tooLong }, n: { after: [1.5, 'y'.repeat(300)] }, small: { after: 1 } };
  await record(tenant, { at: now - 2, entity: 'long', paths: JSON.stringify(paths) }, { at: now - 3, entity: 'long' });
  const [item, short] = await list('q=entity:long&valueLimit=256&ref=true');
  expect(item?.cut).toEqual(['a.b', 'n']);
  expect(item?.paths).toEqual({
    'a.b': { before: fits, after: 'é'.repeat(127) },
    n: { after: JSON.stringify(paths.n.after).slice(0, 256) },
    small: { after: 1 },
  });
  expect(short).not.toHaveProperty('cut');
  // all paths together barely exceed the limit here
  await record(tenant, { at: now - 4, entity: 'longer', paths: JSON.stringify({ n: { after: 'z'.repeat(300) } }) });
  expect((await list('q=entity:longer&valueLimit=256'))[0]?.cut).toEqual(['n']);
  const entry = await ask(`entries?ref=${item?.ref}&valueLimit=256`);
  expect(entry.body).toEqual(item);
  expect((await list('q=entity:long&valueLimit=400'))[0]?.paths).toEqual(paths);
});

test('valueLimit is at least 256, and ref is true or false', async () => {
  expect((await ask('changelogs?valueLimit=256&ref=false')).status).toBe(200);
  const message = 'valueLimit must be between 256 and 2147483647';
  for (const operation of ['changelogs?', 'entries?ref=x&']) {
    expect(await ask(`${operation}valueLimit=255`)).toMatchObject({
      status: 400,
      body: { details: [{ field: 'valueLimit', message }] },
    });
  }
  expect(await ask('changelogs?ref=1')).toMatchObject({ status: 400, body: { message: 'ref must be true or false' } });
});
