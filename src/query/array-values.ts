import { type RawBuilder, type SqlBool, sql } from 'kysely';
import { projectedText } from './json-projection.ts';

// The condition on a longer path would have too much text. The database then looks for arrays itself.
const maxTestedSegments = 16;

/**
 * Whether the path meets an array on its way or at its end, so that it may lead to other values than without arrays.
 * For a long path it is true for every document.
 */
export function meetsArray(document: RawBuilder<unknown>, path: readonly string[]): RawBuilder<SqlBool> {
  if (path.length > maxTestedSegments) return sql`true`;
  const tests = beginningsOf(path).map((beginning, index) => {
    const isArray = `@${beginning}.type() == "array"`;
    if (index === path.length - 1 || !path.some(isArrayIndex)) return isArray;
    // A place in an array of scalars is the value that the path has without arrays. To look for others takes long.
    return `exists (@${beginning}[*] ? (@.type() == "array" || @.type() == "object"))`;
  });
  return sql`${document} @? ${`strict $ ? (${tests.join(' || ')})`}::jsonpath`;
}

/**
 * The values that the path leads to, as elements of a jsonb array: a path that meets an array goes on in each of its
 * elements (contract 9). An array at its end counts, and so do its elements.
 */
export function arrayValues(document: RawBuilder<unknown>, path: readonly string[]): RawBuilder<unknown> {
  const keys = path.map((key) => `strict $[*] ? (exists (@${step(key)}))${step(key)}`);
  const places = path.map((key) => (isArrayIndex(key) ? `$[*][${key}]` : null));
  const values = sql`document_values(${document}, ${keys}::jsonpath[], ${places}::jsonpath[])`;
  if (path.length > maxTestedSegments || path.some(isArrayIndex)) return values;
  // PostgreSQL's own steps go on in the elements of an array, but not in arrays within it, and they are much quicker.
  const nested = beginningsOf(path).map((beginning) => `@${beginning}[*].type() == "array"`);
  const steps = path.map(step).join('');
  return sql`case when ${document} @? ${`$ ? (${nested.join(' || ')})`}::jsonpath then ${values}
    else jsonb_path_query_array(${document}, ${`$${steps}`}::jsonpath)
      || jsonb_path_query_array(${document}, ${`$${steps}[*]`}::jsonpath) end`;
}

/** A step to the member of an object. The keys of a field have letters, digits and `_` only. */
export function step(key: string): string {
  return `.${JSON.stringify(key)}`;
}

/** The steps to each segment of the path. */
function beginningsOf(path: readonly string[]): string[] {
  return path.map((_key, index) =>
    path
      .slice(0, index + 1)
      .map(step)
      .join(''),
  );
}

/**
 * The value at a path of a jsonb document; SQL null where there is none. A key of digits is an index where it meets
 * an array, as in the paths of change entries: `0` is, and `00`, `+0` or `-1` is not, whatever PostgreSQL thinks.
 */
export function documentField(document: RawBuilder<unknown>, path: readonly string[]): RawBuilder<unknown> {
  if (path.every((key) => !isOddIndex(key))) return sql`(${document} #> ${path.map(projectedText)}::text[])`;
  return path.reduce((value, key) => {
    const inner = sql`(${value} -> ${projectedText(key)}::text)`;
    if (isOddIndex(key)) return sql`(case when jsonb_typeof(${value}) = 'object' then ${inner} end)`;
    return sql`(${value} #> ${[projectedText(key)]}::text[])`;
  }, document);
}

/** Whether a key stands for a place where it meets an array. */
export function isArrayIndex(key: string): boolean {
  return /^(?:0|[1-9][0-9]*)$/.test(key);
}

/** PostgreSQL would read such a key as an index, although it is not written as one. */
function isOddIndex(key: string): boolean {
  return /^\s*[+-]?[0-9]+$/.test(key) && !isArrayIndex(key);
}
