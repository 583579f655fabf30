import { expect, test } from 'vitest';
import { cutValues, fitDocument } from '../../../src/history/entries/cut-values.ts';

async function cutText(value: string, limit: number): Promise<unknown> {
  const [{ paths, cut } = { paths: '', cut: [] }] = await cutValues([`{"p":{"after":${value}}}`], limit);
  return cut.length === 0 ? 'not cut' : (JSON.parse(paths) as { p: { after: unknown } }).p.after;
}

test.each([
  ['"abcdef"', 8, 'not cut'],
  ['"abcdef"', 7, 'abcde'],
  ['"ééé"', 7, 'éé'],
  ['"ééé"', 6, 'éé'],
  ['"ééé"', 5, 'é'],
  ['"a😀b"', 6, 'a'],
  ['"a\\nb"', 5, 'a\n'],
  ['"a\\nb"', 4, 'a'],
  ['"\\\\\\\\b"', 6, '\\\\'],
  ['"\\\\\\\\b"', 5, '\\'],
  ['"a\\u00e9b"', 9, 'aé'],
  ['"a\\u00e9b"', 8, 'a'],
  ['"\\ud83d\\ude00b"', 14, '😀'],
  ['"\\ud83d\\ude00b"', 13, ''],
  ['"\\ud83d\\ude00b"', 8, ''],
  ['123456', 4, '1234'],
  ['[1,"é"]', 5, '[1,"'],
  ['{"a":1.10}', 9, '{"a":1.10'],
])('%s cut to %d bytes', async (value, limit, expected) => {
  expect(await cutText(value, limit)).toBe(expected);
});

test('integer-like keys and __proto__ keep their places', async () => {
  const paths = '{"__proto__":{"before":1.10},"2":{"after":"abcdef"},"10":{"after":-0}}';
  expect(await cutValues([paths], 7)).toEqual([
    { paths: '{"__proto__":{"before":1.10},"2":{"after":"abcde"},"10":{"after":-0}}', cut: ['2'], lengths: [8] },
  ]);
});

test('a document that just fits is whole; below that its longest values are cut, then its last members dropped', async () => {
  const document = JSON.stringify({ a: 1, text: 'x'.repeat(5_000), list: [1, 2, 3], z: 'end' });
  expect(await fitDocument(document, document.length)).toEqual({ text: document, cut: [], left: 0 });
  const cut = await fitDocument(document, document.length - 1);
  expect(JSON.parse(cut.text)).toEqual({ a: 1, text: 'x'.repeat(4_094), list: [1, 2, 3], z: 'end' });
  expect([cut.cut, cut.left]).toEqual([[['text', 5_002]], 0]);
  const first = await fitDocument(document, 20);
  expect([JSON.parse(first.text), first.left]).toEqual([{ a: 1 }, 3]);
  for (const maxBytes of [2, 20, 100, 300, 1_500, 4_500]) {
    const { text } = await fitDocument(document, maxBytes);
    expect(Buffer.byteLength(text), `${maxBytes}`).toBeLessThanOrEqual(maxBytes);
    expect(() => JSON.parse(text)).not.toThrow();
  }
  const array = await fitDocument(JSON.stringify(Array.from({ length: 1_000 }, () => '"')), 200);
  expect([Buffer.byteLength(array.text) <= 200, array.cut]).toEqual([true, [['document', 5_001]]]);
});
