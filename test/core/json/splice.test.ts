import { expect, test } from 'vitest';
import { elementsOf, memberOf } from '../../../src/core/json/members.ts';
import { parseJson } from '../../../src/core/json/parse.ts';
import { JsonSplice } from '../../../src/core/json/splice.ts';
import type { JsonNode } from '../../../src/core/json/tape.ts';
import { Random } from '../../support/oracle/random.ts';
import { trials } from '../../support/oracle/trials.ts';

const random = new Random();

test('members are set and added, and all other bytes stay', () => {
  const text = ' { "mod\\u0065l" : "ä" , "n": 1.0 ,"o":{ } }\n';
  const document = parseJson(text);
  const inner = memberOf(document, 'o') as JsonNode;
  const splice = new JsonSplice(document).set(document, 'model', '"b"').set(document, 'p', '[]').set(inner, 'q', '1');
  expect(String(splice.bytes())).toBe(' {"p":[], "mod\\u0065l" : "b" , "n": 1.0 ,"o":{"q":1 } }\n');
  expect(splice.length).toBe(splice.bytes().length);
  // A later change of a place replaces the earlier one.
  expect(String(splice.set(document, 'p', '2').set(document, 'model', '3').bytes())).toBe(
    ' {"p":2, "mod\\u0065l" : 3 , "n": 1.0 ,"o":{"q":1 } }\n',
  );
});

test('what is removed, at once or one after another, is gone, and the rest is the same JSON', () => {
  for (let trial = 0; trial < trials(200); trial += 1) {
    const count = random.below(6);
    const removed = Array.from({ length: count }, () => random.below(2) === 1);
    const blank = () => random.pick(['', ' ', '\n']);
    const names = Array.from({ length: count }, (_, index) => `k${index}`);
    const object = `{${names.map((name) => `${blank()}"${name}"${blank()}:${blank()}"${name}"${blank()}`).join(',')}}`;
    const list = `[${names.map((name) => `${blank()}"${name}"${blank()}`).join(',')}]`;
    const kept = names.filter((_, index) => !removed[index]);
    const document = parseJson(`[${object},${list}]`);
    const [first, second] = elementsOf(document) as [JsonNode, JsonNode];
    const splice = new JsonSplice(document).remove(second, (index) => removed[index] === true);
    for (const name of random.shuffled(names)) if (!kept.includes(name)) splice.removeMember(first, name);
    expect(JSON.parse(String(splice.bytes())), `${object} ${removed}`).toEqual([
      Object.fromEntries(kept.map((name) => [name, name])),
      kept,
    ]);
  }
});

test('a key that comes again is told, however it is written and wherever it stands', () => {
  const repeated = (text: string) => parseJson(text).tape.repeatedKey !== -1;
  expect(repeated('{"a":1,"b":{"a":2}}')).toBe(false);
  expect(repeated('[{"b":{"a":1,"\\u0061":2}}]')).toBe(true);
  const many = Array.from({ length: 100 }, (_, index) => `"k${index}":0`);
  expect(repeated(`{${many.join(',')}}`)).toBe(false);
  expect(repeated(`{${many.join(',')},"k0":1}`)).toBe(true);
});
