import { threaded } from '../../core/fairness/threads.ts';
import { entriesOf, objectText } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import type { PathPattern } from '../../core/path-pattern.ts';
import { applyRulesAt, type CompiledRules, compileRules } from '../../recording/mapping/apply-rules.ts';
import { keysOfPath } from '../../recording/rebuild/entry-changes.ts';

/**
 * Puts masks in place of hidden values, also inside of whole values. Takes the `paths` of several entries, as JSON
 * texts. Long ones are masked in a worker thread.
 *
 * @example
 * await hideValues(['{"card.number":{"after":"4111"}}'], hide); // ['{"card.number":{"after":"********"}}']
 */
export async function hideValues(paths: readonly string[], hide: readonly PathPattern[]): Promise<readonly string[]> {
  return hide.length === 0 ? paths : await maskPaths(paths, hide);
}

const maskPaths = threaded(
  import.meta.url,
  'maskPaths',
  (paths: readonly string[], hide: readonly PathPattern[]): string[] => {
    const rules = compiledMasks(hide);
    return paths.map((text) => maskedPaths(text, rules));
  },
);

export function compiledMasks(hide: readonly PathPattern[]): CompiledRules {
  return compileRules({ mask: hide, ignore: [] });
}

/** The `paths` of one entry, as JSON text, with masks. */
export function maskedPaths(text: string, rules: CompiledRules): string {
  return objectText(
    entriesOf(parseJson(text)).map(([path, sides]): [string, string] => [
      path,
      objectText(entriesOf(sides).map(([side, value]) => [side, hiddenValue(path, value, rules)])),
    ]),
  );
}

/** A path that begins with an empty key is also that of a document that is no object, without the key. */
function hiddenValue(path: string, value: JsonNode, rules: CompiledRules): string {
  const keys = keysOfPath(path);
  const masked = applyRulesAt(rules, keys, value) ?? '';
  return keys[0] === '' ? (applyRulesAt(rules, keys.slice(1), parseJson(masked)) ?? '') : masked;
}
