import { entriesOf } from '../../json/members.ts';
import type { JsonNode } from '../../json/tape.ts';
import { compactText } from '../../json/text.ts';
import { maximumPathsBytes, PathsTooLargeError } from '../path-list.ts';
import type { Difference } from '../paths.ts';

/**
 * The difference of an update of which only some new values are known: each member of the document is one value, and no entry marks
 * it as whole.
 */
export function partialDifference(after: JsonNode): Difference {
  const entries = entriesOf(after);
  const members = entries.map(
    ([key, value]) => `${JSON.stringify(key.replace(/[.\\]/g, '\\$&'))}:{"after":${compactText(value)}}`,
  );
  const paths = `{${members.join(',')}}`;
  if (Buffer.byteLength(paths) > maximumPathsBytes) throw new PathsTooLargeError();
  return { paths, marks: entries.some(([key]) => key === '') ? '{"root":true}' : undefined };
}
