import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { correlationSeal } from '../../../src/core/correlation-seal.ts';
import { createSealer } from '../../../src/core/sealing.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { rowsOfCsv } from '../../support/oracle/csv.ts';
import { changeOf } from '../../support/server/history.ts';
import { type Call, contentOf, endOfJob, startExport } from '../../support/server/jobs.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10);
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
await server.createTenant('acme');
const uuid = '0190c9a4-7d5e-7c3a-9b1f-3f2a1c0d9e8f';
const longest = '€'.repeat(200);
const groups = ['req-1', undefined, uuid, 'req-1', longest, 'exists', '"\u0001,\u0001'];
const changes = groups.map((correlationId, index) =>
  changeOf({
    at: now - 1_000 + index,
    entity: 'order',
    entityId: `o-${index}`,
    name: '"\u0001 x \u0001',
    ...(correlationId !== undefined && { correlationId }),
  }),
);
changes.push(changeOf({ at: now, entity: 'product', entityId: 'p-1', correlationId: 'req-1' }));
expect(await createRecorder(server.context.db, 'acme', () => now)(changes)).toEqual(changes.map(() => 'recorded'));

const restriction = readRestriction([{ query: 'entity:order', hide: [], actors: 'all' }]);
const clients = [
  await server.createClient('acme', { restriction }),
  await server.createClient('acme', { restriction }),
];
const [client, other] = await Promise.all(clients.map((of) => server.tokenOf(of)));
if (client === undefined || other === undefined) throw new Error('no tokens');
const issuer = await server.token('acme', { scope: 'changelog.viewer_issue' });
const viewerOf = (subject: string) =>
  server.viewerToken('acme', { token: issuer, q: 'entity:order', actors: 'all', subject });
const [viewer, neighbour] = [await viewerOf('c-1'), await viewerOf('c-2')];

async function list(token: string, q = '') {
  const isOfViewer = token.startsWith('annals_view');
  const path = isOfViewer ? '/viewer/acme/changes' : '/changelog/acme/changelogs';
  const answer = await server.call(`${path}?${new URLSearchParams({ q })}`, { token });
  expect({ q, status: answer.status }).toEqual({ q, status: 200 });
  const { items, totalElements } = (await answer.json()) as {
    items: { entityId: string; correlationId?: string }[];
    totalElements: number;
  };
  expect(totalElements).toBe(items.length);
  return items.reverse();
}

const sealedBy = async (token: string, q?: string) => (await list(token, q)).map(({ correlationId }) => correlationId);
const found = async (token: string, q: string) => (await list(token, q)).map(({ entityId }) => entityId);

test('each restricted reader sees texts of its own, equal where the ids are', async () => {
  const seen = new Set<string>();
  for (const token of [client, other, viewer, neighbour]) {
    const sealed = await sealedBy(token);
    expect(sealed.map((text) => text !== undefined && sealed.indexOf(text))).toEqual([0, false, 2, 0, 4, 5, 6]);
    expect(await sealedBy(token)).toEqual(sealed);
    expect(JSON.stringify(sealed)).not.toMatch(new RegExp(`req-1|${uuid}|€|exists`));
    for (const text of sealed) if (text !== undefined) seen.add(text);
  }
  expect(seen.size).toBe(4 * 5);
  expect(await sealedBy(await viewerOf('c-1'))).toEqual(await sealedBy(viewer));
});

test('a reader finds by its text what the id leads to within its part, and by nothing else', async () => {
  const readers = [client, other, viewer, neighbour];
  for (const token of readers) {
    const [group = '', , ofUuid = '', , ofLongest = '', ofExists = ''] = await sealedBy(token);
    expect(await found(token, `correlationId:${group}`)).toEqual(['o-0', 'o-3']);
    expect(await found(token, `correlationId:"${group}" entity:order entityId:o-3`)).toEqual(['o-3']);
    expect(await found(token, `correlationId:(${group}, ${ofUuid}, missing)`)).toEqual(['o-0', 'o-1', 'o-2', 'o-3']);
    expect(await found(token, `correlationId:${ofLongest}`)).toEqual(['o-4']);
    expect(await found(token, `correlationId:${ofExists}`)).toEqual(['o-5']);
    expect(await found(token, 'correlationId:missing')).toEqual(['o-1']);
    expect(await found(token, 'correlationId:exists')).toHaveLength(6);
    expect(
      await found(token, `compoundLogicalQuery:((correlationId:${ofUuid}) OR (correlationId:${ofExists}))`),
    ).toEqual(['o-2', 'o-5']);
    const strangers = await Promise.all(readers.filter((one) => one !== token).map((one) => sealedBy(one)));
    const altered = `${group.slice(0, -1)}${group.endsWith('A') ? 'B' : 'A'}`;
    for (const text of ['req-1', uuid, '"exists"', `${group}=`, altered, ...strangers.map(([first = '']) => first)]) {
      expect(await found(token, `correlationId:${text}`)).toEqual([]);
      expect(await found(token, `correlationId:(${text}, ${ofUuid})`)).toEqual(['o-2']);
    }
  }
});

test('files of restricted readers have the same texts', async () => {
  const call: Call = (path, init = {}) => server.call(path, { token: client, ...init });
  const exported = async (format: string) => {
    const id = await startExport(call, 'acme', { q: '', format });
    await endOfJob(call, 'acme', id);
    return await contentOf(call, 'acme', id);
  };
  const sealed = (await sealedBy(client)).reverse();
  const lines = (await exported('NDJSON')).trimEnd().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { correlationId?: string }).correlationId)).toEqual(sealed);
  const whole = await server.call('/changelog/acme/changelogs', { token: client });
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
    ((await whole.json()) as { items: unknown[] }).items,
  );
  const columnOf = (csv: string) =>
    rowsOfCsv(csv)
      .slice(1)
      .map((row) => row.at(-1));
  const filled = (texts: readonly (string | undefined)[]) => texts.map((text) => text ?? '');
  expect(columnOf(await exported('CSV'))).toEqual(filled(sealed));
  const file = await server.call('/viewer/acme/changes', { token: viewer, headers: { accept: 'text/csv' } });
  expect(columnOf(await file.text())).toEqual(filled((await sealedBy(viewer)).reverse()));
  const [group = ''] = await sealedBy(client);
  const id = await startExport(call, 'acme', { q: `correlationId:${group}`, format: 'NDJSON' });
  await endOfJob(call, 'acme', id);
  expect((await contentOf(call, 'acme', id)).trimEnd().split('\n')).toHaveLength(2);
});

test('the query of a token has the texts of its restricted maker', async () => {
  const [group = '', , ofUuid = ''] = await sealedBy(client);
  const make = (q: string) => server.viewerToken('acme', { token: client, q, actors: 'all' });
  expect(await found(await make(`correlationId:(${group}, ${ofUuid})`), '')).toEqual(['o-0', 'o-2', 'o-3']);
  expect(await found(await make('correlationId:req-1'), '')).toEqual([]);
  const unrestricted = await server.viewerToken('acme', { q: 'correlationId:req-1', actors: 'all' });
  expect(await found(unrestricted, 'entity:order')).toEqual(['o-0', 'o-3']);
});

test('texts that an older key sealed open, and the first key seals', () => {
  const [older, newer] = [randomBytes(32), randomBytes(32)];
  const reader = { tenant: 'acme', maker: 'm', subject: '' };
  const before = correlationSeal(createSealer([older]), reader).seal('req-1');
  const { seal, open } = correlationSeal(createSealer([newer, older]), reader);
  expect(open(before)).toBe('req-1');
  expect(seal('req-1')).toBe(correlationSeal(createSealer([newer]), reader).seal('req-1'));
  expect(seal('req-1')).not.toBe(before);
  expect(correlationSeal(createSealer([newer]), reader).open(before)).toBeUndefined();
  for (const changed of [{ tenant: 'acme2' }, { maker: 'n' }, { subject: 'c-1' }]) {
    expect(correlationSeal(createSealer([older]), { ...reader, ...changed }).open(before)).toBeUndefined();
  }
});
