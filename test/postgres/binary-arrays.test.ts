import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  CompositeArray,
  composite,
  compositeField,
  int4Array,
  int8Array,
  setElementType,
  textArray,
  uuidArray,
} from '../../src/postgres/binary-arrays.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { anyCharacter } from '../support/oracle/any-character.ts';
import { createTestDatabase } from '../support/server/database.ts';

const database = closeAfterAll(await createTestDatabase());

async function readBack(type: string, array: Buffer): Promise<unknown> {
  const { rows } = await database.pool.query(`select to_json($1::${type}[])::text as read`, [array]);
  return JSON.parse(rows[0].read);
}

const text = fc.string({ unit: anyCharacter }).filter((candidate) => !candidate.includes('\0'));

test.each<[string, fc.Arbitrary<unknown[]>, (values: never[]) => Buffer, (values: never[]) => unknown]>([
  ['integer', fc.array(fc.integer()), int4Array, (values) => values],
  ['bigint', fc.array(fc.maxSafeInteger()), int8Array, (values) => values],
  ['text', fc.array(fc.option(text)), textArray, (values) => values],
  [
    'uuid',
    fc.array(fc.uint8Array({ minLength: 16, maxLength: 16 })),
    uuidArray,
    (values: Uint8Array[]) => values.map((value) => Buffer.from(value).toString('hex')),
  ],
])('the database reads back what an array of %s was made of', async (type, arrays, write, expected) => {
  await fc.assert(
    fc.asyncProperty(arrays, async (values) => {
      const read = await readBack(type, write(values as never[]));
      const bare = type === 'uuid' ? (read as string[]).map((uuid) => uuid.replaceAll('-', '')) : read;
      expect(bare).toEqual(expected(values as never[]));
    }),
    { numRuns: 60 },
  );
});

test('the database reads back composite values, also in an array, with the OID that it gave their type', async () => {
  const { rows } = await database.pool
    .query(`
    create type made as (i integer, b bigint, u uuid, t text, list integer[]);
    create type shared as (i integer, t text, u uuid, ints integer[], texts text[], ids uuid[])`)
    .then(() => database.pool.query("select 'made'::regtype::oid::bigint as oid"));
  const uuid = Buffer.alloc(16, 0xab);
  const element = fc.record({
    i: fc.integer(),
    b: fc.maxSafeInteger(),
    t: fc.option(text, { nil: undefined }),
    list: fc.array(fc.integer()),
  });
  await fc.assert(
    // Enough elements that the buffer grows.
    fc.asyncProperty(fc.array(element, { minLength: 1, maxLength: 200 }), async (elements) => {
      const array = new CompositeArray(5);
      for (const { i, b, t, list } of elements) {
        array.begin();
        array.int4(i);
        array.int8(b);
        array.uuid(uuid);
        array.text(t);
        array.int4s(list);
      }
      const bytes = array.end();
      setElementType(bytes, Number(rows[0].oid));
      const expected = elements.map(({ t = null, ...rest }) => ({ ...rest, t, u: expect.stringMatching(/^abab/) }));
      expect(await readBack('made', bytes)).toEqual(expected);
    }),
    { numRuns: 30 },
  );
  const { int4, int4s, texts, uuids } = compositeField;
  const value = composite([
    int4(-7),
    compositeField.text(undefined),
    compositeField.uuid(uuid),
    int4s([1, 2]),
    texts(['é', '']),
    uuids([uuid]),
  ]);
  const read = await database.pool.query('select to_json($1::shared) as read', [value]);
  const id = expect.stringMatching(/^abab/);
  expect(read.rows[0].read).toEqual({ i: -7, t: null, u: id, ints: [1, 2], texts: ['é', ''], ids: [id] });
});
