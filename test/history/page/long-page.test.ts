import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { historyBody } from '../../../src/history/entries/entry-text.ts';
import { createFindPage } from '../../../src/history/search/find-page.ts';
import { changelogDialect } from '../../../src/history/search/plan/dialect.ts';
import { piecesOf } from '../../../src/pagination/pieces.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { parseQuery } from '../../../src/query/parse.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { trials } from '../../support/oracle/trials.ts';
import { createTestDatabase } from '../../support/server/database.ts';

const megabyte = 1024 * 1024;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
/** By tallies, by document, and in several statements. */
const queries = ['', 'entity:order entityId:1', 'entity:order entityId:1*'];

const database = closeAfterAll(await createTestDatabase());
const regexes = new RegexMatcherPool();
const findPage = createFindPage({ pool: database.pool, db: database.db, regexes, now: () => now });

/** A tenant with entries whose `paths` have about the given numbers of bytes, newest first. */
async function makeHistory(tenant: string, lengths: readonly number[]): Promise<void> {
  await createTenant(database.db, tenant);
  const change = { type: 'update', entity: 'order', entityId: '1', actor: 'Jane', related: [], paths: '{}' } as const;
  await createRecorder(
    database.db,
    tenant,
    () => now,
  )(lengths.map((_length, place) => ({ ...change, identity: randomBytes(16), at: now - 1 - place })));
  const placesOf = Map.groupBy(lengths.keys(), (place) => lengths[place] ?? 0);
  for (const [length, places] of placesOf) {
    const [first = 0, ...others] = places.map((place) => now - 1 - place);
    await database.pool.query(
      `update change_entry set paths = '{"text":{"after":"' || repeat('é', $3::integer / 2) || '"}}'
         where tenant = $1 and at = $2`,
      [tenant, first, length],
    );
    // A copy avoids compressing again, which takes as long as the rest of this file.
    await database.pool.query(
      `update change_entry e set paths = one.paths from change_entry one
         where e.tenant = $1 and one.tenant = $1 and one.at = $2 and e.at = any ($3)`,
      [tenant, first, others],
    );
  }
}

function ask(tenant: string, q: string, { page = 1, size = 100, inPieces = true } = {}) {
  const query = parseQuery(q, changelogDialect);
  return findPage(tenant, query, { skip: (page - 1) * size, size, inPieces });
}

async function bodyOf(tenant: string, q: string, size: number): Promise<string> {
  const body = historyBody(await ask(tenant, q, { size }), { page: 1, size });
  if (typeof body === 'string') return body;
  let text = '';
  for await (const part of body) text += part;
  return text;
}

test('a page of any length is sent in small pieces', async () => {
  // Pieces do not depend on their number. With ANNALS_TRIALS=17 they exceed the maximum string length together.
  const entries = trials(2);
  await makeHistory(
    'huge',
    Array.from({ length: entries }, () => 16 * megabyte),
  );
  const body = historyBody(await ask('huge', ''), { page: 1, size: 100 });
  if (typeof body === 'string') throw new Error('the page came as one');
  let bytes = 0;
  let items = 0;
  let end = '';
  for await (const part of body) {
    const text: string = part;
    expect(text.length).toBeLessThan(10 * megabyte);
    bytes += Buffer.byteLength(text);
    items += text.split('"entityId":"1"').length - 1;
    end = text.slice(-80);
  }
  expect(items).toBe(entries);
  expect(bytes).toBeGreaterThan(entries * 16 * megabyte);
  expect(end).toBe(`],"page":1,"size":100,"totalElements":${entries},"totalPages":1}`);
});

describe('a page of 9 MiB', () => {
  const lengths = [100, 2 * megabyte, 10, 3 * megabyte, 200_000, 300_000, 4 * megabyte, 20];

  beforeAll(() => makeHistory('large', lengths));

  test.each(queries)('in pieces equals the whole page: %s', async (q) => {
    const { pieces } = await ask('large', q);
    expect(pieces).toBeDefined();
    const text = await bodyOf('large', q, 100);
    const whole = await ask('large', q, { inPieces: false });
    expect(whole.pieces).toBeUndefined();
    expect(text === historyBody(whole, { page: 1, size: 100 })).toBe(true);
    const answer: { items: { paths: { text: { after: string } } }[]; totalElements: number } = JSON.parse(text);
    expect(answer.totalElements).toBe(lengths.length);
    expect(answer.items.map(({ paths }) => paths.text.after.length)).toEqual(lengths.map((length) => length / 2));
  });

  test.each(queries)('is sent in one piece when requested in smaller pages: %s', async (q) => {
    for (const [place, length] of lengths.entries()) {
      const { total, entries, pieces } = await ask('large', q, { page: place + 1, size: 1 });
      expect({ total, pieces, length: entries[0]?.paths.length }).toEqual({
        total: lengths.length,
        pieces: undefined,
        length: '{"text":{"after":""}}'.length + length / 2,
      });
    }
  });

  test('whose entries are dropped before they are read ends in an error, not as a shorter page', async () => {
    const { pieces } = await ask('large', '');
    await database.pool.query("delete from change_entry where tenant = 'large' and at < $1", [now - 7]);
    const reading = (async () => {
      for await (const entries of pieces ?? []) expect(entries.length).toBeGreaterThan(0);
    })();
    await expect(reading).rejects.toThrow('dropped');
  });
});

describe('a page of 91 MiB', () => {
  const tenant = 'refused';

  beforeAll(() => makeHistory(tenant, [30 * megabyte, 30 * megabyte, 30 * megabyte]));

  test.each(queries)(
    'is refused to a caller that takes no pieces, with advice to request fewer entries: %s',
    async (q) => {
      const message = 'the entries of this page have 91 MiB of text; ask for a smaller size';
      await expect(ask(tenant, q, { inPieces: false })).rejects.toMatchObject({
        type: 'validation_violation',
        message,
        details: [{ field: 'size', message }],
      });
    },
  );

  test('is returned with a smaller page size', async () => {
    expect((await ask(tenant, '', { size: 1, inPieces: false })).entries).toHaveLength(1);
  });
});

test('pieces have as many entries as fit, and at least one', () => {
  const places = Array.from({ length: 7 }, (_none, place) => ({ at: place, sequence: place }));
  const sizes = piecesOf(places, [3, 3, 4, 1, 20, 1, 9], 10).map((piece) => piece.length);
  expect(sizes).toEqual([3, 1, 1, 2]);
  expect(piecesOf([], [], 10)).toEqual([]);
});
