import { gzipSync, zstdCompressSync } from 'node:zlib';
import * as fc from 'fast-check';
import { maxBytes, maxChanges, maxLevels, maxValues } from '../../../src/sources/recorder/limits.ts';

/** What is sent to the recorder. */
export interface SentChanges {
  body: Uint8Array<ArrayBuffer>;
  /** The content type. */
  type: string;
  headers: Record<string, string>;
  query: string;
}

const change = (number: number) =>
  `{"id":"c${number}","op":"insert","entity":"order","entityId":"o${number}","at":"2026-11-15T14:05:12.250Z","after":{"a":${number}}}`;
const changes = (count: number, separator: string) =>
  Array.from({ length: count }, (_, one) => change(one)).join(separator);
const withAfter = (after: string) => change(1).replace('{"a":1}', after);

/** Up to the recorder's limits, and a little beyond. */
const huge = [
  ...[maxChanges, maxChanges + 1].map((count) => changes(count, '\n')),
  ...[-1_000, 1_000].map((beyond) => `[${change(1)},${withAfter(`"${'x'.repeat(maxBytes - 1_000 + beyond)}"`)}]`),
  ...[-100, 100].map((beyond) => withAfter(`[${'0,'.repeat(maxValues + beyond)}0]`)),
  ...[-10, 10].map((beyond) => withAfter('['.repeat(maxLevels + beyond) + ']'.repeat(maxLevels + beyond))),
  withAfter(`{${Array.from({ length: 80_000 }, (_, key) => `"k${key}":1`).join(',')}}`),
];

const text = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom(change(1), changes(3, '\n'), `[${changes(3, ',')}]`, '', '{}', '[]', '\n\n'),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.nat(150), fc.nat(30), fc.constantFrom('', '1', 'null', '"x"', '[]', '{', '\\u0000', '1e400', '\n'))
      .map(([at, length, other]) => change(1).slice(0, at) + other + change(1).slice(at + length)),
  },
  { weight: 2, arbitrary: fc.json() },
  { weight: 1, arbitrary: fc.constantFrom(...huge) },
);

const encodings: Record<string, (body: Uint8Array) => Uint8Array<ArrayBuffer>> = {
  gzip: (body) => Uint8Array.from(gzipSync(body)),
  zstd: (body) => Uint8Array.from(zstdCompressSync(body)),
  br: (body) => Uint8Array.from(body),
};

/** Requests to the recorder: valid, damaged and huge ones, plain and compressed, some of them compressed wrongly. */
export const arbitraryChanges: fc.Arbitrary<SentChanges> = fc
  .record({
    text,
    type: fc.constantFrom(
      'application/x-ndjson',
      'application/json',
      'application/cloudevents+json',
      'application/cloudevents-batch+json',
      'text/plain',
    ),
    encoding: fc.constantFrom(undefined, undefined, ...Object.keys(encodings)),
    isCut: fc.boolean(),
    strict: fc.constantFrom('', '?strict=true', '?strict=maybe'),
  })
  .map(({ text: content, type, encoding, isCut, strict }) => {
    const plain = new TextEncoder().encode(content);
    const encoded = encoding === undefined ? plain : (encodings[encoding]?.(plain) ?? plain);
    return {
      body: isCut && encoding !== undefined ? encoded.slice(0, encoded.length - 4) : encoded,
      type,
      headers: encoding === undefined ? {} : { 'content-encoding': encoding },
      query: strict,
    };
  });
