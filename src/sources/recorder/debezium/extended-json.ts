import { elementsOf, kindOf, memberOf, membersOf, objectText, stringOf } from '../../../core/json/members.ts';
import { isJsonNumber } from '../../../core/json/number.ts';
import type { JsonNode } from '../../../core/json/tape.ts';
import { compactText, sourceText } from '../../../core/json/text.ts';

/**
 * MongoDB's extended JSON (versions 1 and 2) as plain JSON text: numbers with their digits, ids and dates as text, bytes as
 * hexadecimal. Types that JSON has nothing for (timestamps, regular expressions, code) stay as they are.
 *
 * @example
 * plainJson(parseJson('{"_id":{"$oid":"5f"},"n":{"$numberLong":"1004"}}')); // '{"_id":"5f","n":1004}'
 */
export function plainJson(value: JsonNode): string {
  switch (kindOf(value)) {
    case 'array':
      return `[${elementsOf(value).map(plainJson).join(',')}]`;
    case 'object':
      return wrapped(value) ?? objectText([...membersOf(value)].map(([key, member]) => [key, plainJson(member)]));
    default:
      return compactText(value);
  }
}

const numberNames = ['$numberLong', '$numberInt', '$numberDouble', '$numberDecimal'];

/** The plain value of a wrapper such as `{"$oid": …}`; undefined for any other object. */
function wrapped(object: JsonNode): string | undefined {
  const members = membersOf(object);
  const [first] = members.keys();
  if (first === undefined || !first.startsWith('$') || members.size > 2) return undefined;
  const value = members.get(first) ?? object;
  if (members.size === 2) return first === '$binary' || first === '$type' ? binary(members.get('$binary')) : undefined;
  if (numberNames.includes(first)) {
    const text = stringOf(value) ?? sourceText(value);
    return isJsonNumber(text) ? text : JSON.stringify(text);
  }
  if (first === '$oid' || first === '$uuid' || first === '$symbol') return compactText(value);
  if (first === '$undefined') return 'null';
  if (first === '$date') return date(value);
  return first === '$binary' ? binary(memberOf(value, 'base64')) : undefined;
}

/** Milliseconds since 1970, or text already. */
function date(value: JsonNode): string {
  if (kindOf(value) === 'string') return compactText(value);
  const digits = stringOf(kindOf(value) === 'object' ? memberOf(value, '$numberLong') : undefined) ?? sourceText(value);
  const at = new Date(Number(digits));
  return Number.isNaN(at.getTime()) ? compactText(value) : JSON.stringify(at.toISOString());
}

function binary(value: JsonNode | undefined): string | undefined {
  const base64 = stringOf(value);
  return base64 === undefined ? undefined : JSON.stringify(`\\x${Buffer.from(base64, 'base64').toString('hex')}`);
}
