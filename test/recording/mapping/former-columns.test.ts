import { describe, expect, test } from 'vitest';
import { MappingError, readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { mapped, paths } from './mapped-rows.ts';

const former = { card: 'card_no', card_no: 'number', pin: null, code: 'pin', key: 'id' };
const masked = '********';

describe('columns that a table had', () => {
  test.each(['card', 'card_no', 'number'])('a mask of %s holds under all names of the column', (named) => {
    const table = { mask: [`${named}.secret`], former };
    for (const column of ['card', 'card_no', 'number']) {
      const changes = mapped(table, { type: 'create', after: { id: 7, [column]: { secret: 'canary', kind: 'v' } } });
      expect(paths(changes)).toEqual([
        { id: { after: 7 }, 'number.secret': { after: masked }, 'number.kind': { after: 'v' } },
      ]);
    }
  });

  test('a rule of a column that was dropped holds under the names that it had', () => {
    const table = { mask: ['code'], former };
    for (const column of ['code', 'pin']) {
      expect(paths(mapped(table, { type: 'create', after: { id: 7, [column]: 'canary' } }))).toEqual([
        { id: { after: 7 }, pin: { after: masked } },
      ]);
    }
  });

  test('the id, the name and JSON are found under a former name', () => {
    const table = { id: ['id'], name: 'number', json: ['number'], former };
    const [change] = mapped(table, { type: 'create', after: { key: 7, card: '{"a":1}' } });
    expect(change).toMatchObject({ change: { entityId: '7', name: '{"a":1}' } });
    expect(paths(change === undefined ? [] : [change])).toEqual([{ id: { after: 7 }, 'number.a': { after: 1 } }]);
  });

  test('a former name that is a new column beside the renamed one stays a column of its own, under the same rules', () => {
    const after = { id: 7, number: 'canary-1', card: 'canary-2' };
    expect(paths(mapped({ mask: ['card'], former }, { type: 'create', after }))).toEqual([
      { id: { after: 7 }, number: { after: masked }, card: { after: masked } },
    ]);
  });

  test.each([[{ a: 'a' }], [{ a: 'b', b: 'a' }], [{ x: 'a', a: 'b', b: 'a' }]])(
    'a name that leads back to itself is a fault: %j',
    (cycle) => {
      const file = { version: 1, tables: { 'a.b': { entity: 'c', former: cycle } } };
      expect(() => readMapping(JSON.stringify(file))).toThrow(
        new MappingError([{ path: ['tables', 'a.b', 'former', 'a'], message: 'is a former name of itself' }]),
      );
    },
  );
});
