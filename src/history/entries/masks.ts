import type { ExportFormat, ExportRows } from '../../core/export-history.ts';
import { threaded } from '../../core/fairness/threads.ts';
import { elementsOf, entriesOf, memberOf, objectText, stringOf } from '../../core/json/members.ts';
import { maximumImportDepth, parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import type { PathPattern } from '../../core/path-pattern.ts';
import { keysOfPath } from '../../core/path-pattern.ts';
import { textOfProjection } from '../../query/json-projection.ts';
import { applyRulesAt, type CompiledRules, compileRules } from '../../recording/mapping/apply-rules.ts';

/**
 * Masks hidden values, also inside of whole values. Takes the `paths` of several entries, as JSON texts; long ones are
 * masked in a worker thread.
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
    const rules = compileRules({ mask: hide, ignore: [] });
    return paths.map((text) => maskedPaths(text, rules));
  },
);

/** Values as deep as an import takes, in the members of an entry, in a line. */
const maxDepth = maximumImportDepth + 3;

interface LinesOptions {
  readonly format: ExportFormat;
  /** Of a CSV file. With `field` each line has one path, or none. */
  readonly rows: ExportRows;
  readonly hide: readonly PathPattern[];
}

/**
 * Masks hidden values in the lines of a file. Takes a JSON array for each line: the text before `paths`, the paths
 * themselves, and the texts after. Long pieces of a file are masked in a worker thread.
 */
export const hideLines = threaded(
  import.meta.url,
  'hideLines',
  (parts: string, { format, rows, hide }: LinesOptions): string => {
    const rules = compileRules({ mask: hide, ignore: [] });
    const lines = parts.split('\n').filter((line) => line !== '');
    return lines
      .map((line) => {
        const [before, paths, ...after] = elementsOf(parseJson(line, maxDepth));
        if (paths === undefined) throw new Error('a line of an export has no paths');
        const written = compactText(paths);
        const text = rows === 'field' ? withoutStandIns(written) : written;
        const masked = hide.length === 0 ? text : maskedPaths(text, rules);
        const fieldsOf = () => pathFields(masked === written ? paths : parseJson(masked, maxDepth));
        const field = rows === 'field' ? fieldsOf() : format === 'CSV' ? quoted(masked) : masked;
        return `${stringOf(before)}${field}${after.map(stringOf).join('')}`;
      })
      .join('');
  },
);

/** The path and its values before and after, as fields of a CSV line. JSON text is no formula. */
function pathFields(paths: JsonNode): string {
  const [field] = entriesOf(paths);
  if (field === undefined) return ',,';
  const [path, sides] = field;
  const values = ['before', 'after'].map((side) => {
    const value = memberOf(sides, side);
    return value === undefined ? '' : quoted(compactText(value));
  });
  return [quoted(formula.test(path) ? `'${path}` : path), ...values].join(',');
}

/** As the routine csv_field. */
const formula = /^[=+\-@\t\n\r＝＋－＠]/;

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

const jsonString = /"(?:[^"\\]|\\.)*"/g;

/** The JSON text whose strings `plain_json` has rewritten. */
function withoutStandIns(text: string): string {
  if (!/\\u(?:0001|d7ff)|\ud7ff/i.test(text)) return text;
  return text.replaceAll(jsonString, (token) => JSON.stringify(textOfProjection(JSON.parse(token) as string)));
}

function maskedPaths(text: string, rules: CompiledRules): string {
  return objectText(
    entriesOf(parseJson(text, maxDepth)).map(([path, sides]): [string, string] => [
      path,
      objectText(entriesOf(sides).map(([side, value]) => [side, maskedValue(path, value, rules)])),
    ]),
  );
}

/** A path that begins with an empty key is also that of a document that is no object, without the key. */
function maskedValue(path: string, value: JsonNode, rules: CompiledRules): string {
  const keys = keysOfPath(path);
  const masked = applyRulesAt(rules, keys, value) ?? '';
  return keys[0] === '' ? (applyRulesAt(rules, keys.slice(1), parseJson(masked)) ?? '') : masked;
}
