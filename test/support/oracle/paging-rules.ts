import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PageSeen } from '../server/instances.ts';
import { type Asked, type Listed, prepareListed, readListed, storeListed } from '../server/listings.ts';
import { startTestServer, type TestServer } from '../server/server.ts';
import { recordStatements, type Statement } from '../server/statements.ts';
import type { JsonModel } from './json-model.ts';

const tenant = 'acme';
const total = 130;
const ids = Array.from({ length: total }, (_, index) => `id-${String(index).padStart(3, '0')}`);

/** What holds for every list and search that is paged (spec D, contract 10), as tests of one of them. */
export function testPagingRules(listed: Listed): void {
  let server: TestServer;
  let token: string;
  let statements: Statement[];
  let isStored = false;

  beforeAll(async () => {
    server = await startTestServer();
    statements = recordStatements(...server.context.pool.pools);
    token = await server.token(tenant);
    await prepareListed(server, listed, tenant, token);
  });

  // Upkeep of whatever else runs goes through the same pool.
  const isOfList = (text: string) => text.includes(`from ${listed.table}`) && text.includes('key_id');

  beforeEach(async () => {
    if (isStored) return;
    isStored = true;
    await storeListed(
      server,
      listed,
      tenant,
      ids.map((id, index) => ({
        id,
        content: { members: { half: index % 2 === 0, n: { number: String(total - index) } } },
      })),
    );
  });

  afterAll(() => server.close());

  describe.each<Asked['by']>(['list', 'search'])('by %s', (by) => {
    const read = (paging: Record<string, string | number> = {}, headers: Record<string, string> = {}, q?: string) =>
      readListed(server, listed, { tenant, token, by, ...(q === undefined ? {} : { q }) }, paging, headers);
    const cursor = (text: string | null) => text ?? 'no cursor';

    test('the response is a bare array, of 60 by default', async () => {
      const page = await read();
      expect(page.ids).toEqual(ids.slice(0, 60));
    });

    test('pageNumber counts from 1 and pageSize may be 1 to 500', async () => {
      expect((await read({ pageNumber: 3, pageSize: 50 })).ids).toEqual(ids.slice(100));
      expect((await read({ pageSize: 1 })).ids).toEqual(ids.slice(0, 1));
      expect((await read({ pageSize: 500 })).ids).toEqual(ids);
    });

    test.each([
      ['pageNumber', '0', 'pageNumber must be >= 1'],
      ['pageNumber', '-1', 'pageNumber must be >= 1'],
      ['pageNumber', '1.0', 'pageNumber must be >= 1'],
      ['pageNumber', '+1', 'pageNumber must be >= 1'],
      ['pageNumber', '', 'pageNumber must be >= 1'],
      ['pageNumber', '2147483648', 'pageNumber must be <= 2147483647'],
      ['pageSize', '0', 'pageSize must be between 1 and 500'],
      ['pageSize', '501', 'pageSize must be between 1 and 500'],
      ['pageSize', '1e1', 'pageSize must be between 1 and 500'],
      ['pageSize', ' 1', 'pageSize must be between 1 and 500'],
      ['pageSize', 'ten', 'pageSize must be between 1 and 500'],
    ])('%s=%s is 400', async (name, value, message) => {
      const page = await read({ [name]: value });
      expect(page.status).toBe(400);
      expect(page.body).toEqual({
        status: 400,
        type: 'validation_violation',
        message,
        details: [{ field: name, message }],
      });
    });

    test('the total is returned only when requested with X-Total-Count: true', async () => {
      expect((await read()).total).toBeNull();
      expect((await read({}, { 'X-Total-Count': 'false' })).total).toBeNull();
      expect((await read({}, { 'X-Total-Count': 'true' })).total).toBe('130');
      expect((await read({}, { 'X-Total-Count': 'true' }, 'half:true')).total).toBe('65');
      expect((await read({ pageNumber: 99 }, { 'X-Total-Count': 'true' })).total).toBe('130');
    });

    test('no statement counts unless the total is requested', async () => {
      statements.length = 0;
      const first = await read({ pageSize: 10 });
      await read({ pageSize: 10, next: cursor(first.next) }, { 'X-Total-Count': 'true' });
      const second = await read({ pageSize: 10, next: cursor(first.next) });
      await read({ pageSize: 10, prev: cursor(second.prev) }, { 'X-Total-Count': 'true' }, undefined);
      const seen = statements.filter(({ text }) => isOfList(text));
      expect(seen).toHaveLength(4);
      for (const { text } of seen) expect(text).not.toMatch(/count\s*\(|over\s*\(|group by|sum\s*\(/i);
      await read({ pageSize: 10 }, { 'X-Total-Count': 'true' });
      expect(statements.findLast(({ text }) => isOfList(text))?.text).toMatch(/count\s*\(/);
    });

    test('rules 1 to 3: with a cursor pageNumber is not even validated and no total is returned', async () => {
      const first = await read({ pageSize: 50 });
      for (const pageNumber of ['7', '0', 'x', '']) {
        const page = await read({ pageSize: 50, next: cursor(first.next), pageNumber }, { 'X-Total-Count': 'true' });
        expect(page).toMatchObject({ status: 200, ids: ids.slice(50, 100), total: null });
      }
      const twice = await server.call(
        `${listed.path(tenant)}?next=${(await readListed(server, listed, { tenant, token, by: 'list' }, { pageSize: 50 })).next}&pageSize=50&pageNumber=1&pageNumber=2`,
        { token },
      );
      expect(twice.status).toBe(200);
    });

    test('rule 4: next with prev is 400, even where both are empty', async () => {
      const first = await read({ pageSize: 50 });
      for (const both of [
        { next: cursor(first.next), prev: cursor(first.next) },
        { next: '', prev: '' },
        { next: cursor(first.next), prev: '' },
      ]) {
        const page = await read(both);
        expect(page.status).toBe(400);
        expect(page.body).toMatchObject({
          type: 'validation_violation',
          message: 'next and prev must not be given together',
        });
      }
    });

    test('an empty cursor is 400, and so is a repeated one', async () => {
      expect((await read({ next: '' })).status).toBe(400);
      expect((await read({ prev: '' })).status).toBe(400);
      const path = `${listed.path(tenant)}${by === 'search' ? '/search' : ''}?next=a&next=a`;
      const init = by === 'list' ? {} : { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };
      const response = await server.call(path, { token, ...init });
      expect(response.status).toBe(400);
    });

    test('rule 6: the first page has a next cursor, a page in the middle both, the last one a prev cursor', async () => {
      const first = await read({ pageSize: 50 });
      expect([first.prev, first.next]).toEqual([null, expect.any(String)]);
      const second = await read({ pageSize: 50, next: cursor(first.next) });
      expect([second.prev, second.next]).toEqual([expect.any(String), expect.any(String)]);
      const third = await read({ pageSize: 50, next: cursor(second.next) });
      expect([third.prev, third.next]).toEqual([expect.any(String), null]);
      expect(third.ids).toEqual(ids.slice(100));
    });

    test('a page that ends with the last item has no next cursor, be it just full', async () => {
      expect((await read({ pageSize: total })).next).toBeNull();
      const first = await read({ pageSize: total - 1 });
      expect(await read({ pageSize: 1, next: cursor(first.next) })).toMatchObject({ ids: ids.slice(-1), next: null });
    });

    test('offset pages carry the cursors they have as well', async () => {
      const page = await read({ pageNumber: 2, pageSize: 50 });
      expect((await read({ pageSize: 50, next: cursor(page.next) })).ids).toEqual(ids.slice(100));
      expect((await read({ pageSize: 50, prev: cursor(page.prev) })).ids).toEqual(ids.slice(0, 50));
    });

    test('a page beyond the end is an empty array, from which one can go back', async () => {
      const page = await read({ pageNumber: 2147483647, pageSize: 500 });
      expect(page).toMatchObject({ status: 200, body: [], next: null });
      expect((await read({ pageSize: 20, prev: cursor(page.prev) })).ids).toEqual(ids.slice(-20));
      expect(await read({ pageNumber: 2 }, {}, 'half:nothing')).toMatchObject({ body: [], next: null, prev: null });
    });

    test('walking back never reverses the order of items in a page', async () => {
      const page = await read({ pageNumber: 3, pageSize: 50, sort: 'n' });
      expect((await read({ pageSize: 30, prev: cursor(page.prev), sort: 'n' })).ids).toEqual(
        ids.toReversed().slice(70, 100),
      );
    });

    test('rule 7: the order is _id:ASC, which is appended where a sort does not name it', async () => {
      expect((await read({ pageSize: 500, sort: 'half:DESC' })).ids).toEqual([
        ...ids.filter((_id, index) => index % 2 === 0),
        ...ids.filter((_id, index) => index % 2 === 1),
      ]);
      const first = await read({ pageSize: 50, sort: 'half:DESC' });
      const next = await read({ pageSize: 50, sort: 'half:desc,_id:asc', next: cursor(first.next) });
      expect(next).toMatchObject({
        status: 200,
        ids: ids
          .filter((_id, index) => index % 2 === 0)
          .slice(50)
          .concat(ids.filter((_id, index) => index % 2 === 1).slice(0, 35)),
      });
    });

    test('a direction may be written in any case and left out', async () => {
      const [ascending, descending] = [ids.toReversed(), ids];
      for (const sort of ['n', 'n:ASC', 'n:asc', 'n:Asc']) {
        expect((await read({ pageSize: 500, sort })).ids).toEqual(ascending);
      }
      for (const sort of ['n:DESC', 'n:desc']) expect((await read({ pageSize: 500, sort })).ids).toEqual(descending);
      expect((await read({ pageSize: 500, sort: '_id:DESC' })).ids).toEqual(ids.toReversed());
    });

    test.each([
      'n:UP',
      'n:ASC:ASC',
      'n:',
      '',
      ',',
      'n,',
      ':ASC',
      'n,n',
      'n:ASC,n:DESC',
      '_id,_id',
      'a,b,c,d,e,f,g,h,i',
    ])('sort=%s is 400', async (sort) => {
      const page = await read({ sort });
      expect(page.status).toBe(400);
      expect(page.body).toMatchObject({ type: 'validation_violation', details: [{ field: 'sort' }] });
    });

    test('8 sort fields are not too many', async () => {
      expect((await read({ pageSize: 500, sort: 'a,b,c,d,e,f,g,n' })).ids).toEqual(ids.toReversed());
    });

    test('a cursor is a position: rows that are gone or new elsewhere cause no skip and no repeat', async () => {
      const first = await read({ pageSize: 50 });
      isStored = false;
      await server.database.pool.query(`delete from ${listed.table} where id in ('id-049', 'id-050', 'id-010')`);
      const second = await read({ pageSize: 50, next: cursor(first.next) });
      expect(second.ids).toEqual(ids.slice(51, 101));
      expect((await read({ pageSize: 50, prev: cursor(second.prev) })).ids).toEqual(
        ids.slice(0, 49).filter((id) => id !== 'id-010'),
      );
      isStored = false;
      await server.database.pool.query(`delete from ${listed.table}`);
      expect(await read({ next: cursor(first.next) })).toMatchObject({ body: [], next: null, prev: null });
    });

    test('a cursor that nothing follows any more leads back', async () => {
      const first = await read({ pageSize: 50 });
      isStored = false;
      await server.database.pool.query(`delete from ${listed.table} where id > 'id-049'`);
      const empty = await read({ pageSize: 50, next: cursor(first.next) });
      expect(empty).toMatchObject({ body: [], next: null, prev: expect.any(String) });
      expect((await read({ pageSize: 50, prev: cursor(empty.prev) })).ids).toEqual(first.ids);
    });

    test('a cursor reveals nothing of the data and has at most 4 KiB, whatever the values', async () => {
      const astral = (seed: number) =>
        String.fromCodePoint(
          ...Array.from({ length: 200 }, (_, index) => 0x10000 + ((seed * 7919 + index * 104_729) % 0xfffff)),
        );
      const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
      const long = '😀'.repeat(63);
      isStored = false;
      await storeListed(
        server,
        listed,
        tenant,
        [1, 2, 3, 4].map((nth) => ({
          id: `${long}${nth}`,
          content: {
            members: Object.fromEntries(
              names.map((name, index): [string, JsonModel] => [
                name,
                index === 7 && nth > 2
                  ? { number: `-0.${'123456789'.repeat(55)}` }
                  : astral(index + (index === 7 ? nth : 0)),
              ]),
            ),
          },
        })),
      );
      const sort = names.map((name, index) => `${name}:${index % 2 === 0 ? 'ASC' : 'DESC'}`).join();
      const whole = await read({ sort });
      const seen: PageSeen[] = [await read({ sort, pageSize: 1 })];
      for (let page = seen.at(-1); page?.next; page = seen.at(-1)) {
        seen.push(await read({ sort, pageSize: 1, next: page.next }));
      }
      expect(seen.flatMap((page) => page.ids)).toEqual(whole.ids);
      for (const { next, prev } of seen) {
        for (const text of [next, prev]) {
          if (text === null) continue;
          expect(text.length).toBeLessThanOrEqual(4096);
          expect(text).toMatch(/^[A-Za-z0-9_-]+$/);
        }
      }
      expect(seen[1]?.prev?.length).toBeGreaterThan(3500);
    });
  });
}
