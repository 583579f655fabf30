import { expect, test } from 'vitest';
import { glob } from '../../src/query/ast.ts';
import { compileMatcher, likePattern } from '../../src/query/match.ts';
import { closeAfterAll } from '../support/close-after-all.ts';
import { hardNames } from '../support/oracle/query-arbitrary.ts';
import { createTestDatabase } from '../support/server/database.ts';

const database = closeAfterAll(await createTestDatabase());

test('what LIKE takes for more than itself stands for itself', () => {
  expect(likePattern(glob(['100%_\\', '']))).toBe('100\\%\\_\\\\%');
});

test('LIKE finds with the pattern what the glob matches, for hard names and for every cut of them', async () => {
  for (const name of hardNames) {
    const characters = [...name];
    const cut = Math.floor(characters.length / 2);
    const pattern = glob([characters.slice(0, cut).join(''), characters.slice(cut + 1).join('')]);
    const matches = compileMatcher(pattern);
    const { rows } = await database.pool.query<{ name: string }>(
      'select name from unnest($1::text[]) as name where name collate "C" like $2',
      [hardNames, likePattern(pattern)],
    );
    expect(rows.map((row) => row.name)).toEqual(hardNames.filter(matches));
  }
});
