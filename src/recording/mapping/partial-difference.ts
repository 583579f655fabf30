import { entriesOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { maximumPathsBytes, PathsTooLargeError } from '../path-list.ts';
import type { Difference } from '../paths.ts';
import { applyRulesAt, type CompiledRules } from './apply-rules.ts';
import type { ChangedValue } from './row-change.ts';

/**
 * The difference of an update with only some new values known. Each member is one value, and nothing is marked whole.
 */
export function partialDifference(after: JsonNode): Difference {
  return differenceOfPaths(entriesOf(after).map(([key, value]) => [pathOf([key]), `{"after":${compactText(value)}}`]));
}

/** The difference of single values, by the rules. Undefined if all are ignored. */
export function differenceOfValues(rules: CompiledRules, values: readonly ChangedValue[]): Difference | undefined {
  const paths = values.flatMap(({ keys, after }): [string, string][] => {
    const shown = applyRulesAt(rules, keys, parseJson(after ?? 'null'));
    if (shown === undefined) return [];
    return [[pathOf(keys), after === undefined ? '{}' : `{"after":${shown}}`]];
  });
  return paths.length === 0 ? undefined : differenceOfPaths(paths);
}

function differenceOfPaths(entries: readonly (readonly [path: string, sides: string])[]): Difference {
  const paths = `{${entries.map(([path, sides]) => `${JSON.stringify(path)}:${sides}`).join(',')}}`;
  if (Buffer.byteLength(paths) > maximumPathsBytes) throw new PathsTooLargeError();
  return { paths, marks: entries.some(([path]) => path === '') ? '{"root":true}' : undefined };
}

function pathOf(keys: readonly string[]): string {
  return keys.map((key) => key.replace(/[.\\]/g, '\\$&')).join('.');
}
