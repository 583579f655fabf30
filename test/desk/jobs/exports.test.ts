import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ExportHistory, ExportPiece } from '../../../src/core/export-history.ts';
import { createExportHistory } from '../../../src/history/export/export-history.ts';
import { csvHead } from '../../../src/history/export/export-store.ts';
import { dropPortion, setRetention } from '../../../src/history/retention/retention.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { inTransaction } from '../../../src/postgres/transaction.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { createRecorder, recordChange } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { csvRowOf, fieldRowsOf, normalized, rowsOfCsv } from '../../support/oracle/csv.ts';
import { arbitraryHistory } from '../../support/oracle/history-arbitrary.ts';
import { checkLaw, someOf } from '../../support/oracle/law.ts';
import { arbitraryQuery } from '../../support/oracle/query-arbitrary.ts';
import { type Call, endOfJob, itemsOfQuery, startExport } from '../../support/server/jobs.ts';
import { startTestServer } from '../../support/server/server.ts';

const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const day = 86_400_000;
const always = 'occurredAt:>="1970-01-01T00:00:00Z"';

const regexes = new RegexMatcherPool();
const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const dictionaries = new DictionaryCache(server.context.pool);
// Pieces of a few lines, so that every boundary between pieces occurs.
const exports = createExportHistory({ db: server.context.db, regexes, now: () => now, dictionaries, pieceBytes: 500 });

describe('the file of an export', () => {
  test('has the items of the query, text for text, in their order, whatever the history and the query', async () => {
    const call = await callerOf('law');
    const scenario = arbitraryHistory(['law'], now, { who: true }).chain((history) =>
      fc.record({ history: fc.constant(history), queries: someOf(arbitraryQuery(history.vocabulary), 4) }),
    );
    await checkLaw(scenario, { runs: 4 }, async ({ history, queries }) => {
      await server.database.pool.query(
        'delete from change_entry; delete from change_related; delete from change_delta; delete from change_tally',
      );
      for (const { changes, fold } of history.batches) {
        await record('law', changes);
        if (fold) await foldHistory(server.context.db, 'law');
      }
      for (const { text: q } of queries) {
        const items = await itemsOfQuery(call, 'law', q);
        const pieces = await piecesOf('law', q, 'NDJSON');
        expect(linesOf(pieces)).toEqual(items);
        expect(pieces.reduce((sum, piece) => sum + piece.entries, 0)).toBe(items.length);
        expect(rowsOfCsv((await piecesOf('law', q, 'CSV')).map((piece) => piece.text).join(''))).toEqual([
          csvHead().trim().split(','),
          ...items.map(csvRowOf),
        ]);
        const fields = await collect({ tenant: 'law', q, format: 'CSV', rows: 'field' });
        expect(fields.reduce((sum, piece) => sum + piece.entries, 0)).toBe(items.length);
        expect(rowsOfFields(fields)).toEqual(items.flatMap(fieldRowsOf));
      }
    });
  });

  test('is fetched over HTTP once the job has succeeded, in either format', async () => {
    const call = await callerOf('fetch');
    // More than goes into one piece.
    const paths = JSON.stringify({ note: { after: 'x'.repeat(1_000) } });
    await record(
      'fetch',
      manyChanges(1_200).map((entry) => ({ ...entry, paths })),
    );
    const items = await itemsOfQuery(call, 'fetch', 'entity:product');
    expect(items.length).toBe(1_200);

    const ndjson = await exported(call, 'fetch', { q: 'entity:product', format: 'NDJSON' });
    expect(ndjson.type).toBe('application/x-ndjson');
    expect(ndjson.text).toBe(items.map((line) => `${line}\n`).join(''));
    expect(ndjson.job).toMatchObject({
      type: 'EXPORT',
      status: 'success',
      metadata: { q: 'entity:product', format: 'NDJSON', entries: 1_200, bytes: Buffer.byteLength(ndjson.text) },
    });

    const csv = await exported(call, 'fetch', { q: 'entity:product', format: 'CSV' });
    expect(csv.type).toBe('text/csv; charset=utf-8; header=present');
    expect(rowsOfCsv(csv.text).slice(1)).toEqual(items.map(csvRowOf));
  });

  test('is empty, but for the header of CSV, where nothing matches', async () => {
    const call = await callerOf('nothing');
    expect((await exported(call, 'nothing', { q: 'entity:order', format: 'NDJSON' })).text).toBe('');
    expect((await exported(call, 'nothing', { q: 'entity:order', format: 'CSV' })).text).toBe(
      'at,type,entity,entityId,name,schemaVersion,actor,related,paths,actorId,onBehalfOfName,onBehalfOfId,correlationId\r\n',
    );
  });

  test('has no field that a spreadsheet would run', async () => {
    const call = await callerOf('formula');
    const hostile = ['=1+1', '+1', '-1', '@sum', '\t=1', '\r=1', '\n=1', '＝1', '=cmd|" /C calc"!A0'];
    await record(
      'formula',
      hostile.map((formula, index) => change({ at: now - index, entityId: formula, actor: formula, name: formula })),
    );
    const { text } = await exported(call, 'formula', { q: '', format: 'CSV' });
    const fields = rowsOfCsv(text).slice(1);
    expect(fields.map(([, , , id]) => id)).toEqual(hostile.map((formula) => `'${formula}`));
    for (const field of fields.flat()) expect(field).not.toMatch(/^[=+\-@\t\r\n＝＋－＠]/);
  });

  test('has a row for each path, digit for digit, and one for a change without paths', async () => {
    const call = await callerOf('fields');
    const paths =
      '{"price":{"before":1.10,"after":-12345678901234567890.1234567890123456789e-3},"=cmd()":{"after":"=1+1"},' +
      '"a\\"b":{"before":null},"nul\\u0000":{"after":"\\u0000\\ud800\\u0001"},"-5":{"before":[1.0],"after":{"x":1E5}}}';
    await record('fields', [
      change({ at: now - 1, paths, related: [{ entity: 'group', entityId: 'g' }] }),
      change({ at: now - 2, type: 'delete' }),
    ]);
    const { text, job } = await exported(call, 'fields', { q: '', format: 'CSV', rows: 'field' });
    expect(job.metadata).toMatchObject({ rows: 'field', entries: 2 });
    expect(rowsOfCsv(text).map((row) => row.slice(7, 12))).toEqual([
      ['related', 'pathNumber', 'path', 'before', 'after'],
      ['[{"entity":"group","entityId":"g"}]', '1', 'price', '1.10', '-12345678901234567890.1234567890123456789e-3'],
      ['', '2', "'=cmd()", '', '"=1+1"'],
      ['', '3', 'a"b', 'null', ''],
      ['', '4', 'nul\0', '', '"\\u0000\\ud800\\u0001"'],
      ['', '5', "'-5", '[1.0]', '{"x":1E5}'],
      ['[]', '', '', '', ''],
    ]);
  });

  test('with a row for each path comes in bounded pieces, and resumes within a change', async () => {
    await server.createTenant('wide');
    const paths = `{${Array.from({ length: 10_000 }, (_, index) => `"p${index}":{"after":${index}}`).join(',')}}`;
    const related = Array.from({ length: 200 }, (_, index) => ({ entity: 'group', entityId: `g-${index}` }));
    await record('wide', [change({ at: now - 1 }), change({ at: now - 2, paths, related }), change({ at: now - 3 })]);
    const request = { tenant: 'wide', q: '', format: 'CSV', rows: 'field', bom: true } as const;
    const whole = await collect(request);
    const rows = rowsOfFields(whole);
    expect(rows.length).toBe(10_002);
    expect(rows.slice(1, -1).map((row) => row[8])).toEqual(
      Array.from({ length: 10_000 }, (_, index) => `${index + 1}`),
    );
    // A piece has 500 bytes and the row that exceeds them. One row has the related items.
    expect(whole.filter(({ text }) => text.length > 1_000).length).toBe(1);
    const pick = Math.floor(Math.random() * whole.length);
    for (const cut of [1, 2, 3, pick, whole.length - 1]) {
      const first = whole.slice(0, cut);
      const last = first.at(-1);
      if (last === undefined) continue;
      const rest = await collect({ ...request, resume: { ...last.of, after: last.last } });
      expect([...first, ...rest].map(({ text }) => text).join('')).toBe(whole.map(({ text }) => text).join(''));
      expect([...first, ...rest].reduce((sum, { entries }) => sum + entries, 0)).toBe(3);
    }
  });

  test('begins with one byte order mark where a CSV file is to have one', async () => {
    const call = await callerOf('marked');
    await record('marked', [change({ name: '\ufeffmarked' })]);
    const { job, text } = await exported(call, 'marked', { q: '', format: 'CSV', bom: true });
    const without = await exported(call, 'marked', { q: '', format: 'CSV', bom: false });
    const { text: nothing } = await exported(call, 'marked', { q: 'entity:none', format: 'CSV', bom: true });
    expect([text, nothing].map((file) => file.charCodeAt(0))).toEqual([0xfeff, 0xfeff]);
    expect(text).toBe(`\ufeff${without.text}`);
    expect(job.metadata.bytes).toBe(Buffer.byteLength(text));
    for (const member of [{ bom: true }, { bom: false }, { rows: 'change' }, { rows: 'field' }, { rows: 'path' }]) {
      const response = await call('/ai-service/marked/jobs', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ type: 'EXPORT', format: 'NDJSON', ...member }),
      });
      expect(response.status).toBe(400);
      const { details } = (await response.json()) as { details: { field: string }[] };
      expect(details.map(({ field }) => field)).toEqual(Object.keys(member));
    }
  });

  test('takes a line of any length', async () => {
    await server.createTenant('long');
    const paths = JSON.stringify({ text: { after: 'x'.repeat(3_000_000) } });
    await record('long', [change({ at: now - 1 }), change({ at: now - 2, paths }), change({ at: now - 3 })]);
    const lines = linesOf(await piecesOf('long', '', 'NDJSON'));
    expect(lines.map((line) => line.length > 1_000_000)).toEqual([false, true, false]);
    // As deep as an import takes.
    const deep = `${'['.repeat(9_999)}1.0${']'.repeat(9_999)}`;
    await record('long', [change({ at: now - 4, paths: `{"deep":{"after":${deep}}}` })]);
    const rows = rowsOfFields(await collect({ tenant: 'long', q: '', format: 'CSV', rows: 'field' }));
    expect(rows.map((row) => row[11]?.length)).toEqual([0, 3_000_002, 0, deep.length]);
  });
});

describe('an export is one snapshot', () => {
  test('what is recorded while it runs, early or late in its window, is not in it', async () => {
    await server.createTenant('writers');
    await record('writers', manyChanges(200));
    const before = linesOf(await piecesOf('writers', '', 'NDJSON'));
    const during = linesOf(
      await piecesOf('writers', '', 'NDJSON', async () => await record('writers', manyChanges(3))),
    );
    expect(during).toEqual(before);
    expect(linesOf(await piecesOf('writers', '', 'NDJSON')).length).toBeGreaterThan(before.length);
  });

  test('one that was cut off resumes in it, despite changes recorded since or under way when it began', async () => {
    await server.createTenant('resumed');
    await record('resumed', manyChanges(100));
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { promise: committing, resolve: commit } = Promise.withResolvers<void>();
    const underWay = inTransaction(server.context.db, async (transaction) => {
      for (const entry of manyChanges(100)) {
        const identity = randomBytes(16);
        await recordChange(transaction, 'resumed', { ...entry, identity, entityId: 'under way' }, now);
      }
      begin();
      await committing;
    });
    await begun;
    const whole = linesOf(await piecesOf('resumed', 'entity:product', 'NDJSON'));
    for (const cut of [1, 2, 7]) {
      const first = await cutAfter('resumed', cut);
      if (cut === 2) {
        commit();
        await underWay;
      }
      await record('resumed', manyChanges(20, 'someone new'));
      const last = first.at(-1);
      if (last === undefined) throw new Error('nothing was exported');
      const resume = { ...last.of, after: last.last };
      const rest = await collect({ tenant: 'resumed', q: 'entity:product', format: 'NDJSON', resume });
      expect(rest.every((piece) => !piece.isFirst)).toBe(true);
      // One that is cut off again continues in the same snapshot.
      expect(rest.map(({ of }) => of)).toEqual(rest.map(() => last.of));
      const lines = linesOf([...first, ...rest]);
      // The first cut is compared with what there was; later ones begin in a snapshot of their own.
      if (cut === 1) expect(lines).toEqual(whole);
      expect(lines.filter((line) => line.includes('under way')).length).toBe(cut === 7 ? 100 : 0);
      expect(new Set(lines).size).toBe(lines.length);
    }
  });

  test('one that was cut off starts over where retention has passed its beginning', async () => {
    await server.createTenant('retained');
    await record(
      'retained',
      Array.from({ length: 60 }, (_, index) => change({ at: now - index * day })),
    );
    const [first] = await cutAfter('retained', 1, always);
    if (first === undefined) throw new Error('nothing was exported');
    const { horizon } = await setRetention(server.context.db, 'retained', 40, now);
    while ((await dropPortion(server.context.db, 'retained', horizon, { maxRows: 1_000 })).dropped > 0);
    const resume = { ...first.of, after: first.last };
    const pieces = await collect({ tenant: 'retained', q: always, format: 'NDJSON', resume });
    expect(pieces[0]?.isFirst).toBe(true);
    expect(linesOf(pieces).length).toBe(41);
  });
});

test('an export starts over an hour before retention passes its beginning, since clocks of processes differ', async () => {
  const { pool, db } = server.context;
  await server.createTenant('midnight');
  await record(
    'midnight',
    Array.from({ length: 60 }, (_, index) => change({ at: now - index * day })),
  );
  await setRetention(db, 'midnight', 40, now);
  let clock = 0;
  const timed = createExportHistory({
    db,
    regexes,
    now: () => clock,
    dictionaries: new DictionaryCache(pool),
    pieceBytes: 500,
  });
  const midnight = Math.ceil(now / day) * day;
  const request = { tenant: 'midnight', q: always, format: 'NDJSON', askedAt: now } as const;
  const { signal } = new AbortController();
  const begins = async (from?: Parameters<ExportHistory['run']>[0]['resume']) => {
    const pieces: ExportPiece[] = [];
    await timed.run({ ...request, resume: from, signal }, async (piece) => void pieces.push(piece));
    return pieces;
  };
  clock = midnight - 2 * 3_600_000;
  const [first] = await begins();
  if (first === undefined) throw new Error('nothing was exported');
  const resume = { ...first.of, after: first.last };
  clock = midnight - 3_600_001;
  expect((await begins(resume))[0]?.isFirst).toBe(false);
  clock = midnight - 3_600_000;
  expect((await begins(resume))[0]?.isFirst).toBe(true);
});

async function callerOf(tenant: string): Promise<Call> {
  const token = await server.token(tenant);
  return (path, init) => server.call(path, { ...init, token });
}

async function exported(call: Call, tenant: string, request: Parameters<typeof startExport>[2]) {
  const id = await startExport(call, tenant, request);
  const job = await endOfJob(call, tenant, id);
  const response = await call(`/ai-service/${tenant}/jobs/${id}/content`);
  expect(response.status).toBe(200);
  // `text()` would drop a byte order mark.
  const text = Buffer.from(await response.arrayBuffer()).toString();
  return { job, type: response.headers.get('content-type'), text };
}

async function piecesOf(
  tenant: string,
  q: string,
  format: 'NDJSON' | 'CSV',
  onPiece: () => Promise<void> = async () => {},
): Promise<ExportPiece[]> {
  return await collect({ tenant, q, format }, onPiece);
}

async function collect(
  request: Omit<Parameters<ExportHistory['run']>[0], 'askedAt' | 'signal'>,
  onPiece: () => Promise<void> = async () => {},
): Promise<ExportPiece[]> {
  const pieces: ExportPiece[] = [];
  await exports.run(
    { readsContext: true, ...request, askedAt: now, signal: new AbortController().signal },
    async (piece) => {
      pieces.push(piece);
      await onPiece();
    },
  );
  return pieces;
}

/** The first pieces of an export that is then stopped. */
async function cutAfter(tenant: string, count: number, q = 'entity:product'): Promise<ExportPiece[]> {
  const pieces: ExportPiece[] = [];
  const stop = new AbortController();
  const run = exports.run({ tenant, q, format: 'NDJSON', askedAt: now, signal: stop.signal }, async (piece) => {
    pieces.push(piece);
    if (pieces.length === count) {
      stop.abort();
      throw new Error('cut');
    }
  });
  await expect(run).rejects.toThrow('cut');
  return pieces;
}

async function record(tenant: string, changes: readonly Omit<Change, 'identity'>[]): Promise<void> {
  const recorder = createRecorder(server.context.db, tenant, () => now);
  await recorder(changes.map((entry) => ({ ...entry, identity: randomBytes(16) })));
}

function change(overrides: Partial<Change>): Omit<Change, 'identity'> {
  return {
    at: now,
    type: 'update',
    entity: 'product',
    entityId: 'p',
    actor: 'Jane',
    related: [],
    paths: '{}',
    ...overrides,
  };
}

function manyChanges(count: number, actor = 'Jane "J" Doe'): Omit<Change, 'identity'>[] {
  return Array.from({ length: count }, (_, index) =>
    change({
      at: now - index * 60_000,
      entityId: `p-${index}, "quoted"\n${randomBytes(4).toString('hex')}`,
      actor,
      related: [{ entity: 'group', entityId: 'g' }],
    }),
  );
}

/** The rows of a file with a row for each path, without its head. */
function rowsOfFields(pieces: readonly ExportPiece[]): string[][] {
  const [, ...rows] = rowsOfCsv(pieces.map((piece) => piece.text).join(''));
  return rows.map((row) => row.map((field, column) => (column === 10 || column === 11 ? normalized(field) : field)));
}

function linesOf(pieces: readonly ExportPiece[]): string[] {
  const text = pieces.map((piece) => piece.text).join('');
  return text === '' ? [] : text.slice(0, -1).split('\n');
}
