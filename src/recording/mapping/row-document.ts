import { elementsOf } from '../../core/json/members.ts';
import { parseIfJson, parseJson } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';
import type { RelatedItem } from '../change.ts';
import { faultOfName, maxNameCharacters } from '../name-fault.ts';
import { type Mapping, schemaOf, type TableMapping } from './mapping.ts';
import type { Row } from './row-change.ts';

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
function plainTextOf(json: string): string | undefined {
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
