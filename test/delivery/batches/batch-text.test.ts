import { CloudEvent } from 'cloudevents';
import { expect, test } from 'vitest';
import {
  type BatchLimits,
  BatchRoom,
  joinedTexts,
  mediaTypeOf,
  textsOf,
} from '../../../src/delivery/batches/batch-text.ts';
import { manifestText, nextDay } from '../../../src/delivery/batches/manifest.ts';
import { deliveredChange } from '../../support/server/delivered-changes.ts';

const changes = [1, 2, 3].map((position) => deliveredChange(position));
const usual = { tenant: 'shop', hide: [], baseUrl: 'https://history.example/annals' };
const unlimited = { maxChanges: 1_000, maxBytes: 1_048_576 };

/** How many of the texts a batch takes, and whether it has ended then. */
function taken(texts: readonly string[], limits: BatchLimits): { count: number; isFull: boolean } {
  const room = new BatchRoom(limits);
  const refused = texts.findIndex((text) => !room.take(text));
  return { count: refused === -1 ? texts.length : refused, isFull: refused !== -1 || room.bytesLeft === 0 };
}

test('a batch ends at its number of changes, and not before', () => {
  expect(taken(['a', 'b'], { ...unlimited, maxChanges: 3 })).toEqual({ count: 2, isFull: false });
  expect(taken(['a', 'b', 'c'], { ...unlimited, maxChanges: 3 })).toEqual({ count: 3, isFull: true });
  expect(taken(['a', 'b', 'c', 'd'], { ...unlimited, maxChanges: 3 })).toEqual({ count: 3, isFull: true });
});

test('a batch ends at its bytes with their line ends, and not before; a change that is longer goes alone', () => {
  const long = 'ä'.repeat(50);
  const maxBytes = 3 * 101;
  expect(taken([long, long], { ...unlimited, maxBytes })).toEqual({ count: 2, isFull: false });
  expect(taken([long, long, long], { ...unlimited, maxBytes })).toEqual({ count: 3, isFull: true });
  expect(taken([long, long, long], { ...unlimited, maxBytes: maxBytes - 1 })).toEqual({ count: 2, isFull: true });
  expect(taken([long, long], { ...unlimited, maxBytes: 10 })).toEqual({ count: 1, isFull: true });
  expect(Buffer.byteLength(joinedTexts([long, long, long], 'ndjson'))).toBe(maxBytes);
});

test('in the format of Annals a batch has the items of the feed with every digit, a line each or as one array', () => {
  const texts = textsOf(changes, { ...usual, format: 'annals' });
  expect(joinedTexts(texts, 'ndjson')).toBe(changes.map(({ text }) => `${text}\n`).join(''));
  expect(joinedTexts(texts, 'ndjson')).toContain('"before":39.90');
  expect(JSON.parse(joinedTexts(texts, 'json'))).toEqual(changes.map(({ text }) => JSON.parse(text)));
  expect(mediaTypeOf('annals', 'ndjson')).toBe('application/x-ndjson');
  expect(mediaTypeOf('annals', 'json')).toBe('application/json');
});

test('as CloudEvents every change is one that the package cloudevents takes, with the item as data', () => {
  const allChanges = [...changes, deliveredChange(4, { entity: 'a/b ü', entityId: '"4"\n%' })];
  const texts = textsOf(allChanges, { ...usual, format: 'cloudevents' });
  const events = (JSON.parse(joinedTexts(texts, 'json')) as object[]).map((event) => new CloudEvent(event, true));
  expect(events.map(({ data }) => data)).toEqual(allChanges.map(({ text }) => JSON.parse(text)));
  expect(new Set(events.map(({ id }) => id)).size).toBe(allChanges.length);
  expect(events[3]).toMatchObject({
    source: 'https://history.example/annals/changelog/shop',
    type: 'annals.change.update',
    subject: 'a%2Fb%20%C3%BC/%224%22%0A%25',
    datacontenttype: 'application/json',
  });
  expect(texts[0]).toContain('"before":39.90');
  expect(mediaTypeOf('cloudevents', 'json')).toBe('application/cloudevents-batch+json');
  expect(mediaTypeOf('cloudevents', 'ndjson')).toBe('application/x-ndjson');
});

test('values of hidden paths are masked in either format', () => {
  for (const format of ['annals', 'cloudevents'] as const) {
    const [text = ''] = textsOf(changes, { ...usual, hide: ['price.*'], format });
    expect(text).toContain('"price.amount":{"before":"********","after":"********"}');
    expect(text).not.toContain('39.90');
  }
});

test('a CloudEvent has the same id whenever it is sent, and another change another one', () => {
  const id = (position: number) => {
    const [text = ''] = textsOf([deliveredChange(position)], { ...usual, format: 'cloudevents' });
    return (JSON.parse(text) as { id: string }).id;
  };
  expect(id(1)).toBe(id(1));
  expect(id(1)).not.toBe(id(2));
});

test('a manifest lists the objects of its day in order with their sums; an empty day has an empty list', () => {
  const of = { tenant: 'shop', subscription: 's-1', date: '2026-11-23' };
  const object = (first: number, last: number) => ({ key: `${first}-${last}`, first, last, changes: 2, sha256: 'ab' });
  const objects = [object(1, 5), object(6, 9)];
  expect(JSON.parse(manifestText(of, objects))).toEqual({ version: 1, ...of, changes: 4, objects });
  expect(JSON.parse(manifestText(of, []))).toEqual({ version: 1, ...of, changes: 0, objects: [] });
  expect(nextDay('2026-12-31')).toBe('2027-01-01');
});
