import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { uuidOf } from '../../../src/core/text-hash.ts';
import {
  documentMatch,
  documentNumber,
  entityNumber,
  maxWordCharacters,
} from '../../../src/history/documents/name-documents.ts';
import {
  type DocumentSearch,
  entriesOfPortions,
  findCandidates,
  maxCandidates,
  searchDocuments,
} from '../../../src/history/documents/search-documents.ts';
import { dropPortion } from '../../../src/history/retention/retention.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { type HistorySnapshot, inHistorySnapshot } from '../../../src/history/search/snapshot.ts';
import { foldHistory, foldPortion } from '../../../src/history/upkeep/fold.ts';
import { deleteTenant } from '../../../src/postgres/tenants/delete-tenant.ts';
import type { Change } from '../../../src/recording/change.ts';
import { givePositions } from '../../../src/recording/positions.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { foundDocuments } from '../../support/oracle/found-documents.ts';
import { arbitraryHistory, type HistorySketch } from '../../support/oracle/history-arbitrary.ts';
import { checkLaw, someOf } from '../../support/oracle/law.ts';
import { hardNames } from '../../support/oracle/query-arbitrary.ts';
import { changeOf } from '../../support/server/history.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';
import { activityView } from '../../support/server/statements-waiting.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const day = 86_400_000;
const tenants = ['alpha', 'beta'];

const tokens = new Map<string, string>();

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
for (const tenant of [...tenants, 'acme'])
  tokens.set(tenant, await server.token(tenant, { scope: 'changelog.changelog_read' }));

test('the search finds the documents that an evaluator finds by reading every entry', async () => {
  const prefix = fc.oneof(
    fc.constantFrom('', '', 'j', 'JANE', 'd', '1', 'Σ', 'ſ', '-', 'do ja', 'jane x'),
    fc.constantFrom(...hardNames),
    fc.tuple(fc.constantFrom(...hardNames), fc.nat(6)).map(([name, length]) => [...name].slice(0, length).join('')),
  );
  const scenario = arbitraryHistory(tenants, now).chain((history) =>
    fc.record({
      history: fc.constant(history),
      horizon: fc.option(fc.integer({ min: 0, max: 40 }).map((days) => (Math.floor(now / day) - days) * day)),
      asked: someOf(
        fc.record({
          tenant: fc.constantFrom(...tenants),
          prefix,
          entity: fc.option(fc.constantFrom(...history.vocabulary.entities, 'nothing'), { nil: undefined }),
          changedBefore: fc.option(fc.constantFrom(...history.vocabulary.times), { nil: undefined }),
          size: fc.constantFrom(1, 2, 7, 100),
        }),
        20,
      ),
    }),
  );
  await checkLaw(scenario, { runs: 3 }, async ({ history, horizon, asked }) => {
    const recorded = await recordAnew(history);
    if (horizon !== null) await server.database.pool.query(retention, [tenants, horizon]);
    for (const { tenant, ...search } of asked) {
      const kept = (recorded.get(tenant) ?? []).filter(({ at }) => horizon === null || at >= horizon);
      const expected = { search, values: foundDocuments(kept, search) };
      expect({ search, values: await ask(tenant, search) }).toEqual(expected);
      for (const candidates of [0, 1, maxCandidates])
        expect({ search, values: await searchAll(tenant, search, candidates) }).toEqual(expected);
    }
  });
});

const retention = `insert into change_retention (tenant, horizon) select tenant, $2 from unnest($1::text[]) as t (tenant)`;

/** Empties the tenants, records the history, and returns the entries of each, newest first. */
async function recordAnew(history: HistorySketch): Promise<Map<string, Omit<Change, 'identity'>[]>> {
  await server.database.pool.query(
    `delete from change_related; delete from change_entry; delete from change_delta; delete from change_tally;
     update change_folded set folds = folds + 1; delete from change_retention; delete from change_document`,
  );
  const recorded = new Map<string, Omit<Change, 'identity'>[]>();
  for (const { tenant, changes, fold } of history.batches) {
    await createRecorder(
      server.context.db,
      tenant,
      () => now,
    )(changes.map((change) => ({ ...change, identity: randomBytes(16) })));
    recorded.set(tenant, [...(recorded.get(tenant) ?? []), ...changes]);
    if (fold) await foldHistory(server.context.db, tenant);
  }
  for (const [tenant, changes] of recorded) {
    recorded.set(
      tenant,
      changes.toReversed().sort((a, b) => b.at - a.at),
    );
  }
  return recorded;
}

async function call(tenant: string, parameters: Record<string, string>): Promise<{ status: number; body: unknown }> {
  const query = new URLSearchParams({ field: 'document', ...parameters });
  const response = await server.call(`/changelog/${tenant}/names?${query}`, { token: tokens.get(tenant) ?? '' });
  return { status: response.status, body: await response.json() };
}

async function ask(tenant: string, { entity, prefix, changedBefore, size }: DocumentSearch): Promise<unknown> {
  const { body } = await call(tenant, {
    prefix,
    size: String(size),
    ...(entity === undefined ? {} : { entity }),
    ...(changedBefore === undefined ? {} : { changedBefore: new Date(changedBefore).toISOString() }),
  });
  return (body as { values?: unknown }).values ?? body;
}

/** The same search where the newest entries name too few documents, and where more than `candidates` may match. */
async function searchAll(tenant: string, search: DocumentSearch, candidates: number): Promise<object[]> {
  const names = await new DictionaryCache(server.context.pool).get(tenant);
  const found = await inHistorySnapshot(server.context, { tenant, now }, names, (snapshot) =>
    searchDocuments(snapshot, tenant, search, { portions: [1, 2], candidates }),
  );
  return found.map(({ entity, entityId, name, at }) => ({
    entity,
    entityId,
    ...(name === null ? {} : { name }),
    at: new Date(at).toISOString(),
  }));
}

test('a document is found by its last name, even after its deletion, and not by an earlier name', async () => {
  const record = createRecorder(server.context.db, 'acme', () => now);
  await record([
    changeOf({ at: now - 3, entity: 'product', entityId: 'p-1', name: 'Lamp Alba' }),
    changeOf({ at: now - 2, entity: 'product', entityId: 'p-1', name: 'Desk lamp (Alba 2)' }),
    changeOf({ at: now - 1, entity: 'product', entityId: 'p-1', type: 'delete' }),
    changeOf({ at: now, entity: 'order', entityId: 'p-10' }),
  ]);
  const lamp = { entity: 'product', entityId: 'p-1', name: 'Desk lamp (Alba 2)', at: new Date(now - 1).toISOString() };
  const order = { entity: 'order', entityId: 'p-10', at: new Date(now).toISOString() };
  expect(await call('acme', { prefix: '2 ALB' })).toEqual({ status: 200, body: { field: 'document', values: [lamp] } });
  expect(await ask('acme', { prefix: 'p-1', size: 20 })).toEqual([lamp, order]);
  expect(await ask('acme', { prefix: 'p-', size: 20 })).toEqual([order, lamp]);
  expect(await ask('acme', { prefix: 'lamp x', size: 20 })).toEqual([]);
  await record([changeOf({ at: now + 1, entity: 'product', entityId: 'p-1', name: 'Chair' })]);
  expect(await ask('acme', { prefix: 'alba', size: 20 })).toEqual([]);
  expect(await ask('acme', { prefix: '', changedBefore: now + 1, size: 20 })).toEqual([order]);
});

test('an exact id comes first, exact names second, however many others changed later; with changedBefore neither is there', async () => {
  const of = 'exact';
  tokens.set(of, await server.token(of, { scope: 'changelog.changelog_read' }));
  const later = Array.from({ length: 120 }, (_, index) =>
    changeOf({ at: now - 120 + index, entity: 'product', entityId: `alba-2-${index}`, name: `Alba 2 No. ${index}` }),
  );
  await recordAll(of, [
    changeOf({ at: now - 900, entity: 'product', entityId: 'alba-2', name: 'Machine' }),
    changeOf({ at: now - 800, entity: 'order', entityId: '7', name: 'alba-2' }),
    changeOf({ at: now - 700, entity: 'order', entityId: '8', name: 'ALBA-2' }),
    changeOf({ at: now - 600, entity: 'order', entityId: 'ALBA-2' }),
    ...later,
  ]);
  const ids = async (search: Omit<DocumentSearch, 'size'>, size: number) =>
    ((await ask(of, { ...search, size })) as { entityId: string }[]).map(({ entityId }) => entityId);
  for (const fold of [false, true]) {
    if (fold) await foldHistory(server.context.db, of);
    expect(await ids({ prefix: 'alba-2' }, 5)).toEqual(['alba-2', '8', '7', 'alba-2-119', 'alba-2-118']);
    expect(await ids({ prefix: 'alba-2' }, 1)).toEqual(['alba-2']);
    expect(await ids({ prefix: 'alba-2', entity: 'order' }, 5)).toEqual(['8', '7']);
    expect(await ids({ prefix: 'ALBA-2' }, 3)).toEqual(['ALBA-2', '8', '7']);
    expect(await ids({ prefix: 'alba-2', changedBefore: now - 118 }, 5)).toEqual(['alba-2-1', 'alba-2-0']);
    expect(await ids({ prefix: 'alba-', changedBefore: now - 500 }, 5)).toEqual(['8', '7', 'alba-2']);
  }
});

test('while a fold names the documents of a tenant, another tenant is folded and searched', async () => {
  const [named, bystander] = ['named', 'bystander'];
  for (const tenant of [named, bystander]) {
    tokens.set(tenant, await server.token(tenant, { scope: 'changelog.changelog_read' }));
    await createRecorder(
      server.context.db,
      tenant,
      () => now,
    )([changeOf({ at: now, entity: 'product', entityId: 'p', name: 'Alba' })]);
  }
  const blocker = await server.database.pool.connect();
  onTestFinished(() => blocker.release(true));
  await blocker.query('begin');
  await blocker.query('insert into change_document (tenant, document, entity, words) values ($1, $2, $3, $4)', [
    named,
    documentNumber(uuidOf('p')),
    entityNumber('product'),
    'blocks',
  ]);
  const fold = foldHistory(server.context.db, named);
  await eventually(async () => {
    const { rows } = await server.database.pool.query(
      `select from ${activityView()} where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length;
  }).toBe(1);
  // The service may have begun to fold it already.
  await foldHistory(server.context.db, bystander);
  await eventually(() => wordsOfDirectory(bystander)).toEqual(['alba']);
  for (const tenant of [named, bystander]) {
    expect(await ask(tenant, { prefix: 'alb', size: 20 })).toMatchObject([{ entityId: 'p' }]);
  }
  // Another process leaves the tenant to the running fold.
  expect(await foldHistory(server.context.db, named)).toBe(0);
  await blocker.query('rollback');
  expect(await fold).toBe(1);
  expect(await wordsOfDirectory(named)).toEqual(['alba']);
});

test('ids are case-sensitive everywhere, names are not', async () => {
  const of = 'cases';
  tokens.set(of, await server.token(of, { scope: 'changelog.changelog_read' }));
  await createRecorder(
    server.context.db,
    of,
    () => now,
  )([
    changeOf({ at: now, entityId: 'Lamp-1' }),
    changeOf({ at: now - 1, entityId: 'lamp-1' }),
    changeOf({ at: now - 2, entityId: 'x', name: 'A LAMP' }),
  ]);
  for (const fold of [false, true]) {
    if (fold) await foldHistory(server.context.db, of);
    expect(await ask(of, { prefix: 'lamp', size: 20 })).toMatchObject([{ entityId: 'lamp-1' }, { entityId: 'x' }]);
    expect(await ask(of, { prefix: 'Lamp', size: 20 })).toMatchObject([{ entityId: 'Lamp-1' }, { entityId: 'x' }]);
    expect(await ask(of, { prefix: 'LAMP-', size: 20 })).toMatchObject([{ entityId: 'x' }]);
  }
});

async function recordAll(tenant: string, changes: readonly Change[]): Promise<void> {
  const record = createRecorder(server.context.db, tenant, () => now);
  for (let start = 0; start < changes.length; start += 2_000) await record(changes.slice(start, start + 2_000));
}

async function inSnapshotOf<Result>(
  tenant: string,
  read: (snapshot: HistorySnapshot) => Promise<Result>,
): Promise<Result> {
  const names = await new DictionaryCache(server.context.pool).get(tenant);
  return await inHistorySnapshot(server.context, { tenant, now }, names, read);
}

test('up to 5,000 candidates are checked one by one; more are found in order of time', async () => {
  const of = 'candidates';
  await server.token(of);
  const candidates = () =>
    inSnapshotOf(of, ({ transaction, dictionary }) => {
      const kinds = dictionary.kinds.map(({ id }) => id);
      const source = { transaction, tenant: of, since: 0, kinds, entityOfKind: kinds.map(() => 0), isEveryKind: true };
      const entities = dictionary.kinds.slice(0, 1).map(({ entity }) => entity);
      return findCandidates(source, entities, { prefix: 'many', match: documentMatch('many') });
    });
  const documents = Array.from({ length: maxCandidates }, (_, index) => `${index}`);
  await recordAll(
    of,
    documents.map((entityId) => changeOf({ at: now, entityId, name: 'Many' })),
  );
  await foldHistory(server.context.db, of);
  expect(await candidates()).toHaveLength(maxCandidates);
  await recordAll(of, [changeOf({ at: now, entityId: 'more', name: 'many more' })]);
  await foldHistory(server.context.db, of);
  expect(await candidates()).toBeUndefined();
});

test('a search reads 21,100 entries in portions, and the document index only if these have too few documents', async () => {
  expect(entriesOfPortions.reduce((sum, some) => sum + some, 0)).toBe(21_100);
  const of = 'newest';
  await server.token(of);
  const portions = [2, 3, 5];
  const newest = Array.from({ length: 9 }, (_, index) => changeOf({ at: now + index, entityId: 'busy' }));
  await recordAll(of, [changeOf({ at: now - 1, entityId: 'rare' }), ...newest]);
  const search = () =>
    inSnapshotOf(of, async (snapshot) => {
      const found = await searchDocuments(
        snapshot,
        of,
        { prefix: '', size: 2 },
        { portions, candidates: maxCandidates },
      );
      const { rows } = await sql`select from pg_cursors where name = 'documents'`.execute(snapshot.transaction);
      return { found: found.map(({ entityId }) => entityId), cursors: rows.length };
    });
  expect(await search()).toEqual({ found: ['busy', 'rare'], cursors: 0 });
  await recordAll(of, [changeOf({ at: now + 9, entityId: 'busy' })]);
  expect(await search()).toEqual({ found: ['busy', 'rare'], cursors: 1 });
});

test('the directory stores the first 100 characters of a word, and a search still compares the rest', async () => {
  const of = 'words';
  tokens.set(of, await server.token(of, { scope: 'changelog.changelog_read' }));
  const start = 'x'.repeat(maxWordCharacters);
  await createRecorder(
    server.context.db,
    of,
    () => now,
  )([
    changeOf({ at: now, entityId: '1', name: start }),
    changeOf({ at: now - 1, entityId: '2', name: `${start}y` }),
    changeOf({ at: now - 2, entityId: '3', name: `${start}z` }),
  ]);
  await foldHistory(server.context.db, of);
  expect(await wordsOfDirectory(of)).toEqual([start, start, start]);
  expect(await ask(of, { prefix: start, size: 20 })).toHaveLength(3);
  expect(await ask(of, { prefix: `${start}y`, size: 20 })).toMatchObject([{ entityId: '2' }]);
});

test('changedBefore is exact to every digit, and a malformed value is 400 with a detail', async () => {
  const documents = { values: [expect.objectContaining({ entityId: 'p-10' })] };
  const at = new Date(now).toISOString().replace('Z', '');
  expect(await call('acme', { changedBefore: `${at}Z` })).toMatchObject({ body: { values: [] } });
  expect(await call('acme', { changedBefore: `${at}000001Z` })).toMatchObject({ body: documents });
  for (const changedBefore of ['', 'yesterday', '2026-02-30T00:00:00Z']) {
    expect(await call('acme', { changedBefore })).toMatchObject({
      status: 400,
      body: {
        type: 'validation_violation',
        details: [{ field: 'changedBefore', message: expect.stringMatching(/^changedBefore must be a /) }],
      },
    });
  }
  for (const size of ['0', '101']) {
    expect(await call('acme', { size })).toMatchObject({
      status: 400,
      body: { details: [{ field: 'size', message: 'size must be between 1 and 100' }] },
    });
  }
});

async function wordsOfDirectory(tenant: string): Promise<string[]> {
  const { rows } = await server.database.pool.query<{ words: string }>(
    'select words from change_document where tenant = $1 order by words',
    [tenant],
  );
  return rows.map(({ words }) => words);
}

test('the directory has the words of current names, and follows folds and retention', async () => {
  const of = 'directory';
  await server.token(of);
  const { db } = server.context;
  const record = createRecorder(db, of, () => now);
  await record([
    changeOf({ at: now - 9 * day, entityId: '1', name: 'ΟΔΟΣ Alba' }),
    changeOf({ at: now - 9 * day, entityId: '2', name: 'First first' }),
    changeOf({ at: now - 9 * day, entityId: '3', entity: 'site', name: 'Only old' }),
    changeOf({ at: now, entityId: '3', entity: 'site' }),
    changeOf({ at: now, entityId: '4', name: '★' }),
  ]);
  expect(await wordsOfDirectory(of)).toEqual([]);
  await foldHistory(db, of);
  expect(await wordsOfDirectory(of)).toEqual(['alba οδοσ', 'first', 'old only']);
  await record([changeOf({ at: now - 1, entityId: '2', name: 'Second' })]);
  await record([changeOf({ at: now - 2, entityId: '2', name: 'Between' })]);
  await foldHistory(db, of);
  expect(await wordsOfDirectory(of)).toEqual(['alba οδοσ', 'old only', 'second']);
  await dropPortion(db, of, Math.floor(now / day - 1) * day, { maxRows: 100 });
  expect(await wordsOfDirectory(of)).toEqual(['second']);
  await deleteTenant(db, of);
  expect(await wordsOfDirectory(of)).toEqual([]);
});

test('a fold reads names in portions, and the last name wins whatever the portion size', async () => {
  const of = 'portions';
  await server.token(of);
  const { db } = server.context;
  const record = createRecorder(db, of, () => now);
  for (const [at, name] of [
    [now, 'Newest'],
    [now - 2, 'Oldest'],
    [now - 1, 'Between'],
  ] as const) {
    await record([changeOf({ at, entityId: 'renamed', name }), changeOf({ at, entityId: `d-${at}`, name })]);
  }
  const portions = (atOnce: number) =>
    server.database.pool
      .query('select first, last from change_fold_portions($1, 1000, $2)', [of, atOnce])
      .then(({ rows }) => rows);
  await givePositions(db, of);
  const [all] = await portions(6);
  // A portion ends with the delta that fills it.
  expect(await portions(5)).toEqual([all]);
  expect(await portions(4)).toEqual([
    { first: all.first, last: expect.any(Number) },
    { first: all.last, last: all.last },
  ]);
  expect(await portions(2)).toHaveLength(3);
  expect(await foldPortion(db, of, 1_000, 2)).toBe(6);
  expect(await wordsOfDirectory(of)).toEqual(['between', 'newest', 'newest', 'oldest']);
});
