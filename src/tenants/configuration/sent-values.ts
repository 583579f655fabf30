import { threaded } from '../../core/fairness/threads.ts';
import { type JsonSize, sizeOfJson } from '../../core/json/measure.ts';
import { elementsOf, kindOf, membersOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';

/** A value in a request. */
export interface SentValue {
  /** JSON text with numbers verbatim (contract: how changes are recorded). */
  json: string;
  size: JsonSize;
}

/** The `value` of each item of a validated body: an item, or an array of items. */
export const sentValues = threaded(import.meta.url, 'sentValues', (bodyText: string): SentValue[] => {
  const body = parseJson(bodyText);
  const items = kindOf(body) === 'array' ? elementsOf(body) : [body];
  return items.map((item) => {
    const value = membersOf(item).get('value');
    if (value === undefined) throw new Error('an object that was validated has no value');
    return { json: compactText(value), size: sizeOfJson(value) };
  });
});
