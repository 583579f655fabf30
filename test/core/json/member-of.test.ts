import fc from 'fast-check';
import { expect, test } from 'vitest';
import { entriesOf, memberOf, membersOf } from '../../../src/core/json/members.ts';
import { parseJson } from '../../../src/core/json/parse.ts';
import { compactText } from '../../../src/core/json/text.ts';
import { trials } from '../../support/oracle/trials.ts';

const key = fc.oneof(fc.constantFrom('id', 'name', '', 'é', '\u{1f600}', 'a"b', '\\u0061', '__proto__'), fc.string());
const pairs = fc.array(fc.tuple(key, fc.jsonValue()), { maxLength: 8 });

/** An object's text, in which keys may come twice and may be written with escapes. */
function objectOf(members: readonly (readonly [string, unknown])[], isEscaped: boolean): string {
  const written = members.map(([name, value]) => {
    const quoted = JSON.stringify(name);
    const escaped = `"${[...name].map((character) => JSON.stringify(character).slice(1, -1)).join('')}"`;
    const hex = (text: string) => text.replace(/[a-z]/g, (letter) => `\\u00${letter.charCodeAt(0).toString(16)}`);
    return `${isEscaped && !quoted.includes('\\') ? hex(escaped) : quoted} : ${JSON.stringify(value)}`;
  });
  return `{ ${written.join(' , ')} }`;
}

// The texts are the measure, not JSON.parse: that of V8 14.6 reads {"a":1,"\n":2} with the key "\" if it has read
// {"a":1,"\\":2} before.
test('a member is the last one of its key, however keys are written and from text or from bytes', () => {
  fc.assert(
    fc.property(pairs, key, fc.boolean(), (members, other, isEscaped) => {
      const text = objectOf(members, isEscaped);
      const expected = new Map(members.map(([name, value]) => [name, JSON.stringify(value)]));
      for (const node of [parseJson(text), parseJson(Buffer.from(text))]) {
        for (const name of [other, ...expected.keys()]) {
          const member = memberOf(node, name);
          expect(member && compactText(member), `${name} of ${text}`).toBe(expected.get(name));
        }
        const entries = entriesOf(node).map(([name, value]): [string, string] => [name, compactText(value)]);
        expect(entries).toEqual([...membersOf(node)].map(([name, value]) => [name, compactText(value)]));
        expect(new Map(entries)).toEqual(expected);
      }
    }),
    { numRuns: trials(100) },
  );
});
