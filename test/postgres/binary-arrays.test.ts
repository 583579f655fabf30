import fc from 'fast-check';
import { expect, test } from 'vitest';
import { int4Array, int8Array, textArray, uuidArray } from '../../src/postgres/binary-arrays.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { anyCharacter } from '../support/oracle/any-character.ts';
import { createTestDatabase } from '../support/server/database.ts';

const database = closeAfterAll(await createTestDatabase());

async function readBack(type: string, array: Buffer): Promise<unknown> {
  const { rows } = await database.pool.query(`select to_json($1::${type}[])::text as read`, [array]);
  return JSON.parse(rows[0].read);
}

const text = fc.string({ unit: anyCharacter }).filter((one) => !one.includes('\0'));

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
      const bare = type === 'uuid' ? (read as string[]).map((one) => one.replaceAll('-', '')) : read;
      expect(bare).toEqual(expected(values as never[]));
    }),
    { numRuns: 60 },
  );
});
