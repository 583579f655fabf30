import { elementsOf, kindOf, membersOf } from '../json/members.ts';
import { parseJson } from '../json/parse.ts';
import { compactText } from '../json/text.ts';

/**
 * The `value` of each item of a body, as JSON text that keeps numbers as they were written (contract: how changes are
 * recorded). The body has been validated: it is an item, or an array of items.
 */
export function valueTexts(bodyText: string): string[] {
  const body = parseJson(bodyText);
  const items = kindOf(body) === 'array' ? elementsOf(body) : [body];
  return items.map((item) => {
    const value = membersOf(item).get('value');
    if (value === undefined) throw new Error('an object that was validated has no value');
    return compactText(value);
  });
}
