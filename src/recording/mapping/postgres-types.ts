import { elementsOf, kindOf, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';

/** Runs a statement on the source: a `pg.Client` or `pg.Pool`. */
interface SourceQueries {
  query<Row extends object>(text: string, values: unknown[]): Promise<{ rows: Row[] }>;
}

/** The column types of a source. Looks up types that are not built in once, in the catalog. */
export class PostgresTypes {
  readonly #source: SourceQueries;
  readonly #rows = new Map<number, TypeRow>();
  readonly #types = new Map<number, PostgresType>();

  constructor(source: SourceQueries) {
    this.#source = source;
  }

  /** Loads the types with these OIDs, and the types they are based on. */
  async load(oids: readonly number[]): Promise<void> {
    const fresh = [...new Set(oids)].filter((oid) => !this.#types.has(oid));
    if (fresh.length === 0) return;
    const { rows } = await this.#source.query<{ oid: string; base: string; element: string; delimiter: string }>(
      typesStatement,
      [fresh],
    );
    for (const { oid, base, element, delimiter } of rows) {
      this.#rows.set(Number(oid), { oid: Number(oid), base: Number(base), element: Number(element), delimiter });
    }
    for (const oid of fresh) this.#types.set(oid, postgresType(oid, this.#rows));
  }

  /** The JSON form of the type, in words. The type must be loaded. */
  description(oid: number): string {
    const words = (type: PostgresType): string => {
      if (type.kind === 'array') return `array of ${words(type.element)}`;
      return type.kind === 'instant' ? 'time in UTC' : type.kind === 'timestamp' ? 'time without zone' : type.kind;
    };
    return words(this.#type(oid));
  }

  /** The JSON text of a value in text format. The type must be loaded. */
  text(oid: number, text: string): string {
    return jsonOfPostgres(this.#type(oid), text);
  }

  /** The JSON text of a value that the source wrote as JSON. The type must be loaded. */
  ofJson(oid: number, json: string): string {
    return jsonOfPostgresJson(this.#type(oid), json);
  }

  #type(oid: number): PostgresType {
    const type = this.#types.get(oid);
    if (type === undefined) throw new Error(`the type with OID ${oid} was not loaded`);
    return type;
  }
}

// A true array is the array type of its element; int2vector, for example, is not and has another text format.
const typesStatement = `
with recursive used as (
  select unnest($1::oid[]) as oid
  union
  select case when t.typtype = 'd' then t.typbasetype else t.typelem end
    from used join pg_catalog.pg_type t using (oid)
   where t.typtype = 'd' or t.typelem <> 0
)
select t.oid::text, case when t.typtype = 'd' then t.typbasetype else 0 end::text as base,
       case when e.typarray = t.oid then e.oid else 0 end::text as element, t.typdelim as delimiter
  from used
  join pg_catalog.pg_type t using (oid)
  left join pg_catalog.pg_type e on e.oid = t.typelem and t.typtype = 'b'`;

/**
 * How values of a PostgreSQL type appear in documents, for capture, triggers and snapshots (recording.md 2):
 *
 * | Type | In a document |
 * |---|---|
 * | `smallint`, `integer`, `bigint`, `oid`, `numeric`, `real`, `double precision` | a number with its digits; NaN and infinities are strings |
 * | `boolean` | true or false |
 * | `json`, `jsonb` | the JSON |
 * | an array | an array |
 * | `timestamp with time zone` | RFC 3339 in UTC, with `Z` |
 * | `timestamp` | the same without `Z` |
 * | `bytea` | `\x` and hexadecimal digits |
 * | any other, also hstore, composite, range and geometric types | its text |
 *
 * A domain is treated as its base type.
 */
type PostgresType =
  | { readonly kind: 'number' | 'boolean' | 'json' | 'instant' | 'timestamp' | 'text' }
  | { readonly kind: 'array'; readonly element: PostgresType; readonly delimiter: string };

/** Built-in types by OID. */
const builtIn: ReadonlyMap<number, PostgresType> = new Map([
  ...[20, 21, 23, 26, 700, 701, 1700].map((oid): [number, PostgresType] => [oid, { kind: 'number' }]),
  [16, { kind: 'boolean' }],
  [114, { kind: 'json' }],
  [3802, { kind: 'json' }],
  [1184, { kind: 'instant' }],
  [1114, { kind: 'timestamp' }],
]);

/** A row of `pg_type`. */
interface TypeRow {
  readonly oid: number;
  /** The base type of a domain, or 0. */
  readonly base: number;
  /** The element type of a true array, or 0. */
  readonly element: number;
  readonly delimiter: string;
}

/** The type with this OID, by rows of `pg_type`. A type that is in no row and not built in is text. */
function postgresType(oid: number, rows: ReadonlyMap<number, TypeRow>): PostgresType {
  const type = builtIn.get(oid);
  if (type !== undefined) return type;
  const row = rows.get(oid);
  if (row === undefined) return { kind: 'text' };
  if (row.base !== 0) return postgresType(row.base, rows);
  if (row.element === 0) return { kind: 'text' };
  return {
    kind: 'array',
    element: postgresType(row.element, rows),
    delimiter: rows.get(row.element)?.delimiter ?? row.delimiter,
  };
}

/**
 * The JSON text of a value in PostgreSQL's text format, with `DateStyle` ISO, `TimeZone` UTC, `bytea_output` hex and
 * `extra_float_digits` 1 or more.
 *
 * @example
 * jsonOfPostgres({ kind: 'instant' }, '2026-01-02 03:04:05.6+00'); // '"2026-01-02T03:04:05.6Z"'
 */
function jsonOfPostgres(type: PostgresType, text: string): string {
  switch (type.kind) {
    case 'number':
      return /^-?\d/.test(text) ? text : JSON.stringify(text);
    case 'boolean':
      return text === 't' ? 'true' : 'false';
    case 'json':
      return text;
    case 'instant':
      return JSON.stringify(text.replace(/^(\d{4,}-\d\d-\d\d) ([\d:.]+)\+00( BC)?$/, '$1T$2Z$3'));
    case 'timestamp':
      return JSON.stringify(text.replace(/^(\d{4,}-\d\d-\d\d) ([\d:.]+)( BC)?$/, '$1T$2$3'));
    case 'array':
      return arrayOf(type.element, type.delimiter, text);
    default:
      return JSON.stringify(text);
  }
}

/**
 * The same JSON text for a value written by `to_jsonb` with `TimeZone` UTC, which differs from the table for times with
 * a time zone (`+00:00`), OIDs (strings), and arrays of them.
 *
 * @example
 * jsonOfPostgresJson({ kind: 'instant' }, '"2026-01-02T03:04:05.6+00:00"'); // '"2026-01-02T03:04:05.6Z"'
 */
function jsonOfPostgresJson(type: PostgresType, json: string): string {
  // Only strings can differ, and most values have none.
  if (!json.includes('"')) return json;
  switch (type.kind) {
    case 'number':
      return json.replace(/^"(-?\d.*)"$/, '$1');
    case 'instant':
      return json.replace(/\+00:00( BC)?"$/, 'Z$1"');
    case 'array':
      return arrayOfJson(type, json);
    default:
      return json;
  }
}

function arrayOfJson(type: Extract<PostgresType, { kind: 'array' }>, json: string): string {
  const value = parseJson(json);
  if (kindOf(value) === 'string') {
    // Arrays of composite values come as PostgreSQL's text.
    const text = stringOf(value) ?? '';
    return /^(?:\[.*\]=)?\{/.test(text) ? jsonOfPostgres(type, text) : json;
  }
  if (kindOf(value) !== 'array') return json;
  const elements = elementsOf(value).map((element) =>
    jsonOfPostgresJson(kindOf(element) === 'array' ? type : type.element, compactText(element)),
  );
  return `[${elements.join(',')}]`;
}

/** An array's text, for example `{1,NULL,"a \"b\""}` or `[0:1]={{1},{2}}`, as JSON without the bounds. */
function arrayOf(element: PostgresType, delimiter: string, text: string): string {
  let json = '';
  let position = text.indexOf('{');
  while (position < text.length) {
    const character = text[position] as string;
    if (character === '{' || character === '}' || character === delimiter) {
      json += character === '{' ? '[' : character === '}' ? ']' : ',';
      position += 1;
    } else if (character === '"') {
      const end = endOfQuoted(text, position);
      json += jsonOfPostgres(element, text.slice(position + 1, end).replace(/\\(.)/gs, '$1'));
      position = end + 1;
    } else {
      let end = position;
      while (end < text.length && text[end] !== delimiter && text[end] !== '}') end += 1;
      const word = text.slice(position, end);
      json += word === 'NULL' ? 'null' : jsonOfPostgres(element, word);
      position = end;
    }
  }
  return json;
}

function endOfQuoted(text: string, start: number): number {
  let end = start + 1;
  while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
  return end;
}
