import { expect, test } from 'vitest';
import { parseTilePath, tilePath, widthOfTile } from '../../../src/proof/log/tiles.ts';

test.each([
  [0, 256, '000'],
  [1234067, 256, 'x001/x234/067'],
  [1000, 17, 'x001/000.p/17'],
  [999, 1, '999.p/1'],
  [273, 112, '273.p/112'],
])('the tile %i of width %i is at %s', (index, width, path) => {
  expect(tilePath(index, width)).toBe(path);
  expect(parseTilePath(path)).toEqual({ index, width });
});

test.each(['', '0', '00', '1000', 'x000/001', '001/002', 'x001/2', '000.p/0', '000.p/256', '000.p/01', '000/', ' 000'])(
  'no tile is at "%s"',
  (path) => {
    expect(parseTilePath(path)).toBeUndefined();
  },
);

test('a tree of 70,000 leaves has the tiles of the example in tlog-tiles', () => {
  const widths = (level: number, index: number) => widthOfTile(level, index, 70_000);
  expect([widths(0, 272), widths(0, 273), widths(0, 274)]).toEqual([256, 112, 0]);
  expect([widths(1, 0), widths(1, 1), widths(1, 2)]).toEqual([256, 17, 0]);
  expect([widths(2, 0), widths(2, 1), widths(3, 0)]).toEqual([1, 0, 0]);
});
