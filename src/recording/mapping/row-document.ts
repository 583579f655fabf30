import { elementsOf } from '../../core/json/members.ts';
import { parseIfJson, parseJson } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';
import type { RelatedItem } from '../change.ts';
import { faultOfName, maxNameCharacters } from '../name-fault.ts';
import { type Mapping, schemaOf, type TableMapping } from './mapping.ts';
import type { Row } from './row-change.ts';

/** Why a row can never be recorded. The message names tables and columns, never values. */
export class RowRejection extends Error {}

/** The text of the id: one column's value as it is, or several joined by `,`, with `\,` and `\\` inside. */
export function idOf(row: Row, columns: readonly string[]): string {
  const id = idTextOf(row, columns);
  const fault = faultOfName(id);
  if (fault !== undefined) throw new RowRejection(`its id ${fault}`);
  return id;
}

/** The same, without a check that an entry can have the id. */
export function idTextOf(row: Row, columns: readonly string[]): string {
  const parts = columns.map((column) => {
    const value = given(row, column);
    const text = value === undefined ? undefined : plainTextOf(value);
    if (text === undefined) throw new RowRejection(`the column ${column} of its id is null`);
    return text;
  });
  return joined(parts);
}

/** Whether the row gives all these columns. */
export function gives(row: Row, columns: readonly string[]): boolean {
  return columns.every((column) => row.get(column) !== undefined);
}

/**
 * The tenant that the mapping names for the row, translated. Undefined where the mapping names none. `otherwise` is for a row that does
 * not give the column of its tenant.
 */
export function tenantOf(mapping: Mapping, table: TableMapping, row: Row, otherwise?: string): string | undefined {
  const { tenant, tenants } = mapping;
  if (tenant === undefined) return undefined;
  if (tenant.kind === 'value') return tenant.tenant;
  if (tenant.kind === 'schema') {
    const schema = schemaOf(table.table);
    return tenants.get(schema) ?? schema;
  }
  if (otherwise !== undefined && row.get(tenant.column) === undefined) return otherwise;
  const value = plainTextOf(given(row, tenant.column));
  if (value === undefined) throw new RowRejection(`the column ${tenant.column} of its tenant is null`);
  return tenants.get(value) ?? value;
}

/** A column's value as a name or an actor: cut to the longest that an entry can have, and undefined where it is none. */
export function labelOf(row: Row, column: string | undefined): string | undefined {
  const value = column === undefined ? undefined : row.get(column);
  const text = value === undefined ? undefined : plainTextOf(value);
  if (text === undefined) return undefined;
  const cut = text.length <= maxNameCharacters ? text : [...text].slice(0, maxNameCharacters).join('');
  return faultOfName(cut) === undefined ? cut : undefined;
}

/** The related documents of a row. A null stands for no document, an array for one document for each element. */
export function relatedOf(table: TableMapping, row: Row): RelatedItem[] {
  return table.related.flatMap(({ entity, id }) => {
    const values = id.map((column) => row.get(column));
    if (values.some((value) => value === undefined)) return [];
    const parts = values.map((value) => partsOf(value ?? 'null'));
    const count = Math.max(...parts.map((list) => (Array.isArray(list) ? list.length : 1)));
    const items: RelatedItem[] = [];
    for (let place = 0; place < count; place += 1) {
      const texts = parts.map((list) => (Array.isArray(list) ? list[place] : list));
      if (texts.some((text) => text === undefined || text === '')) continue;
      const entityId = joined(texts.filter((text) => text !== undefined));
      const fault = faultOfName(entityId);
      if (fault !== undefined) throw new RowRejection(`the id of its related ${entity} ${fault}`);
      items.push({ entity, entityId });
    }
    return items;
  });
}

/** The JSON text of the row's document: the columns that are given, without `ignored` ones. */
export function documentText(row: Row, table: TableMapping, ignored: ReadonlySet<string>): string {
  const members: string[] = [];
  for (const [column, value] of row) {
    if (value === undefined || ignored.has(column)) continue;
    members.push(`${JSON.stringify(column)}:${table.json.has(column) ? unwrapped(value) : value}`);
  }
  return `{${members.join(',')}}`;
}

function given(row: Row, column: string): string {
  const value = row.get(column);
  if (value === undefined) throw new RowRejection(`the source does not give its column ${column}`);
  return value;
}

function joined(parts: readonly string[]): string {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return only;
  return parts.map((part) => part.replace(/[,\\]/g, '\\$&')).join(',');
}

/** JSON text as plain text: a string without its quotes, anything else as it is written. Undefined for null. */
function plainTextOf(json: string): string | undefined {
  if (json === 'null') return undefined;
  if (json.startsWith('"')) return json.includes('\\') ? JSON.parse(json) : json.slice(1, -1);
  return json.startsWith('{') || json.startsWith('[') ? compactText(parseJson(json)) : json;
}

function partsOf(json: string): string | undefined | (string | undefined)[] {
  if (!json.startsWith('[')) return plainTextOf(json);
  return elementsOf(parseJson(json)).map((element) => plainTextOf(compactText(element)));
}

/** The JSON in a string. A string that is not JSON stays a string. */
function unwrapped(value: string): string {
  if (!value.startsWith('"')) return value;
  const content = parseIfJson(JSON.parse(value), maxColumnDepth);
  return content === undefined ? value : compactText(content);
}

/** One level less than a document may have: the row is the outermost. */
const maxColumnDepth = 9_999;
