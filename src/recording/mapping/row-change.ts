import { elementsOf, memberOf, membersOf, objectText } from '../../core/json/members.ts';
import { parseIfJson, parseJson } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import type { Change, ChangeType, RelatedItem, Who } from '../change.ts';
import { faultOfContext, faultOfName, maxNameCharacters } from '../member-faults.ts';
import { applyRules, rowRules } from './apply-rules.ts';
import { type FormerColumns, type Mapping, nameToday, schemaOf, type TableMapping } from './mapping.ts';

/**
 * One side of a changed row: the JSON text of each column's value. `undefined`: the source omitted the value, for
 * example an unchanged TOASTed one. Columns unknown to the source are missing.
 */
export type Row = ReadonlyMap<string, string | undefined>;

/** A changed value of a document. `after`: JSON text; undefined if removed. */
export interface ChangedValue {
  readonly keys: readonly string[];
  readonly after: string | undefined;
}

/** A change of a row, from the source. */
export interface RowChange {
  /** As in the mapping: `schema.table`. */
  readonly table: string;
  readonly type: ChangeType;
  /** May be missing, or have only the columns of the replica identity. */
  readonly before?: Row | undefined;
  /** Whether `before` is the whole row although it lacks columns of `after`, as for documents without a schema. */
  readonly isBeforeWhole?: boolean | undefined;
  readonly after?: Row | undefined;
  /** For the delete of a row that moved: the new row, which says who moved it. Empty if another tenant has it. */
  readonly written?: Row | undefined;
  /** For an update with only these new values known. `after` has the id and other known columns. */
  readonly values?: readonly ChangedValue[] | undefined;
  /** In whole milliseconds since 1970. */
  readonly at: number;
  /** Who made the transaction. Takes precedence over the table's columns. */
  readonly who?: Who | undefined;
  /** As the transaction says. Takes precedence over the table's column. */
  readonly correlationId?: string | undefined;
  /** Derived by Annals, for a change that has none. */
  readonly derivedCorrelationId?: string | undefined;
  /** The transaction's context, JSON text of an object. Takes precedence over the table's columns. */
  readonly context?: string | undefined;
  /** 16 bytes. If the id changed, the identities of both changes are derived from it. */
  readonly identity: Uint8Array;
  /** The columns of the id if the mapping names none. */
  readonly primaryKey?: readonly string[] | undefined;
}

/** A mapped row change. */
export type MappedChange =
  | {
      readonly kind: 'change';
      /** By the mapping, not checked for existence. Undefined if the mapping names none. */
      readonly tenant: string | undefined;
      readonly change: Change;
      /** Whether the row or its transaction says who made it. Otherwise `change.actor` is the default. */
      readonly hasActor: boolean;
      /** Whether it is an update without the whole previous row. */
      readonly lacksBefore?: boolean | undefined;
    }
  | { readonly kind: 'unchanged'; readonly tenant: string | undefined }
  | {
      readonly kind: 'rejected';
      readonly tenant: string | undefined;
      /** Names tables and columns, never values. */
      readonly reason: string;
      /** The change as JSON text, masked and without ignored values, for `readRejectedRow`. */
      readonly content: string;
    };

/** A row as an existing document, for a snapshot. */
export type MappedDocument =
  | {
      readonly kind: 'document';
      readonly tenant: string | undefined;
      /** JSON text, masked. */
      readonly document: string;
      /** The change that creates it. An update has the same members and other `paths`. */
      readonly change: Change;
    }
  | Extract<MappedChange, { kind: 'rejected' }>;

/** Why a row can never be recorded. The message names tables and columns, never values. */
export class RowRejection extends Error {}

/** The id: the value of one column, or several joined by `,`, with `\,` and `\\` as escapes. */
export function idOf(row: Row, columns: readonly string[]): string {
  const id = idTextOf(row, columns);
  const fault = faultOfName(id);
  if (fault !== undefined) throw new RowRejection(`its id ${fault}`);
  return id;
}

/** `idOf` without validation. */
export function idTextOf(row: Row, columns: readonly string[]): string {
  const parts = columns.map((column) => {
    const value = requiredValue(row, column);
    const text = value === undefined ? undefined : plainTextOf(value);
    if (text === undefined) throw new RowRejection(`the column ${column} of its id is null`);
    return text;
  });
  return joined(parts);
}

/** Whether the row has values for all these columns. */
export function hasColumns(row: Row, columns: readonly string[]): boolean {
  return columns.every((column) => row.get(column) !== undefined);
}

/** The tenant of the row by the mapping, or undefined. `fallback`: for a row without the tenant column. */
export function tenantOf(mapping: Mapping, table: TableMapping, row: Row, fallback?: string): string | undefined {
  const { tenant, tenants } = mapping;
  if (tenant === undefined) return undefined;
  if (tenant.kind === 'value') return tenant.tenant;
  if (tenant.kind === 'schema') {
    const schema = schemaOf(table.table);
    return tenants.get(schema) ?? schema;
  }
  if (fallback !== undefined && row.get(tenant.column) === undefined) return fallback;
  const value = plainTextOf(requiredValue(row, tenant.column));
  if (value === undefined) throw new RowRejection(`the column ${tenant.column} of its tenant is null`);
  return tenants.get(value) ?? value;
}

/** A column's value as a name or an actor, truncated to the maximum; undefined if it is not valid. */
export function labelOf(row: Row, column: string | undefined): string | undefined {
  const value = column === undefined ? undefined : row.get(column);
  const text = value === undefined ? undefined : plainTextOf(value);
  if (text === undefined) return undefined;
  const cut = text.length <= maxNameCharacters ? text : [...text].slice(0, maxNameCharacters).join('');
  return faultOfName(cut) === undefined ? cut : undefined;
}

/** The related documents of a row: none for null, one per element for an array. */
export function relatedOf(table: TableMapping, row: Row): RelatedItem[] {
  return table.related.flatMap(({ entity, id }) => {
    const values = id.map((column) => row.get(column));
    if (values.some((value) => value === undefined)) return [];
    const parts = values.map((value) => partsOf(value ?? 'null'));
    const count = Math.max(...parts.map((list) => (Array.isArray(list) ? list.length : 1)));
    const items: RelatedItem[] = [];
    for (let index = 0; index < count; index += 1) {
      const texts = parts.map((list) => (Array.isArray(list) ? list[index] : list));
      if (texts.some((text) => text === undefined || text === '')) continue;
      const entityId = joined(texts.filter((text) => text !== undefined));
      const fault = faultOfName(entityId);
      if (fault !== undefined) throw new RowRejection(`the id of its related ${entity} ${fault}`);
      items.push({ entity, entityId });
    }
    return items;
  });
}

/** The JSON text of the row's document: the columns with values, except `ignored` ones. */
export function documentText(row: Row, table: TableMapping, ignored: ReadonlySet<string>): string {
  const members: string[] = [];
  for (const [column, value] of row) {
    if (value === undefined || ignored.has(column)) continue;
    members.push(`${JSON.stringify(column)}:${table.json.has(column) ? parsedColumn(value) : value}`);
  }
  return `{${members.join(',')}}`;
}

/**
 * The context of a row's change as JSON text: its columns, overridden by the members of `context`. Masks apply to
 * columns and members by name. Undefined if empty. Throws a `RowRejection`.
 */
export function mappedContext(table: TableMapping, row: Row, context: string | undefined): string | undefined {
  if (table.context.size === 0 && context === undefined) return undefined;
  const { masks } = rowRules(table);
  const columns = [...new Set(table.context.values())].flatMap((column): [string, string][] => {
    const value = row.get(column);
    return value === undefined || value === 'null' ? [] : [[column, value]];
  });
  const { after: shown } = applyRules(masks, { after: parseJson(objectText(columns)) });
  const members = new Map<string, JsonNode>();
  for (const [member, column] of table.context) {
    const value = shown && memberOf(shown, column);
    if (value !== undefined) members.set(member, value);
  }
  if (context !== undefined) for (const [member, value] of membersOf(parseJson(context))) members.set(member, value);
  if (members.size === 0) return undefined;
  const { after } = applyRules(masks, { after: parseJson(objectText(members)) });
  if (after === undefined) return undefined;
  const fault = faultOfContext(after);
  if (fault !== undefined) throw new RowRejection(`its context ${fault}`);
  return compactText(after);
}

/** An old row with current column names. If the row has the current name too, the former one is now another column. */
export function rowToday<Sides extends Pick<RowChange, 'before' | 'after' | 'written' | 'values'>>(
  former: FormerColumns,
  row: Sides,
): Sides {
  if (former.names.size === 0) return row;
  const { before, after, written, values } = row;
  const renamed = (column: string) => {
    const today = nameToday(former, column);
    return [before, after, written].some((columns) => columns?.has(today)) ? column : today;
  };
  const side = (columns: Row | undefined): Row | undefined =>
    columns && new Map([...columns].map(([column, value]) => [renamed(column), value]));
  return {
    ...row,
    before: side(before),
    after: side(after),
    written: side(written),
    values: values?.map(({ keys: [column = '', ...rest], ...value }) => ({
      ...value,
      keys: [renamed(column), ...rest],
    })),
  };
}

function requiredValue(row: Row, column: string): string {
  const value = row.get(column);
  if (value === undefined) throw new RowRejection(`the source does not give its column ${column}`);
  return value;
}

function joined(parts: readonly string[]): string {
  const [single] = parts;
  if (parts.length === 1 && single !== undefined) return single;
  return parts.map((part) => part.replace(/[,\\]/g, '\\$&')).join(',');
}

/** JSON text as plain text: a string unquoted, anything else as written. Undefined for null. */
export function plainTextOf(json: string): string | undefined {
  if (json === 'null') return undefined;
  if (json.startsWith('"')) return json.includes('\\') ? JSON.parse(json) : json.slice(1, -1);
  return json.startsWith('{') || json.startsWith('[') ? compactText(parseJson(json)) : json;
}

function partsOf(json: string): string | undefined | (string | undefined)[] {
  if (!json.startsWith('[')) return plainTextOf(json);
  return elementsOf(parseJson(json)).map((element) => plainTextOf(compactText(element)));
}

/** The JSON in a string; a string that is not JSON is unchanged. */
function parsedColumn(value: string): string {
  if (!value.startsWith('"')) return value;
  const content = parseIfJson(JSON.parse(value), maxColumnDepth);
  return content === undefined ? value : compactText(content);
}

/** One level less than a document may have: the row is the outermost. */
const maxColumnDepth = 9_999;
