import type { PathPattern } from '../../core/path-pattern.ts';
import type { FormerColumns } from './former-columns.ts';

/** What of a document is left out, and what is recorded as `********`. */
export interface ValueRules {
  readonly ignore: readonly PathPattern[];
  readonly mask: readonly PathPattern[];
}

/** Whose changes they are: one tenant's, or the tenant that a column or the schema of the table names. */
export type TenantRule =
  | { readonly kind: 'value'; readonly tenant: string }
  | { readonly kind: 'column'; readonly column: string }
  | { readonly kind: 'schema' };

/** How the rows of one table become documents. */
export interface TableMapping {
  /** The name as the mapping has it: `schema.table`. */
  readonly table: string;
  readonly entity: string;
  /** The columns of the id. Undefined: the primary key, which the caller knows. */
  readonly id: readonly string[] | undefined;
  readonly name: string | undefined;
  readonly actor: string | undefined;
  /** The column by which a new row says who made the changes of its transaction, where nothing else does. */
  readonly transactionActor: string | undefined;
  /** A text for all rows, or the column that has it. */
  readonly schemaVersion: { readonly value?: string; readonly column?: string } | undefined;
  readonly related: readonly { readonly entity: string; readonly id: readonly string[] }[];
  /** The rules of the table and those of its entity together, for a column under all of its names. */
  readonly rules: ValueRules;
  /** The rules of the table alone, for columns by their names of today. */
  readonly own: ValueRules;
  readonly former: FormerColumns;
  /** Text columns whose values are read as JSON. */
  readonly json: ReadonlySet<string>;
  /** Members of the context, and the column of each. */
  readonly context: ReadonlyMap<string, string>;
  readonly truncate: 'deletes' | 'ignore';
  readonly snapshot: boolean;
}

/** The mapping of an operator (recording.md 3), checked as a whole. */
export interface Mapping {
  /** Undefined: the mapping names no tenant, so only ways that have one of their own can use it. */
  readonly tenant: TenantRule | undefined;
  /** Tenants by the value of the column or the schema. A value that is not here names the tenant itself. */
  readonly tenants: ReadonlyMap<string, string>;
  /** The names of Debezium's sources that are accepted. Undefined: any. */
  readonly sources: ReadonlySet<string> | undefined;
  readonly tables: ReadonlyMap<string, TableMapping>;
  /** Rules for documents by their entity. */
  readonly entities: ReadonlyMap<string, ValueRules>;
}

/** The columns that a table's rows cannot do without: they name the tenant, the document and its related ones. */
export function keyColumns(mapping: Mapping, table: TableMapping, primaryKey: readonly string[]): string[] {
  const tenant = mapping.tenant?.kind === 'column' ? [mapping.tenant.column] : [];
  const name = table.name === undefined ? [] : [table.name];
  return [...new Set([...tenant, ...(table.id ?? primaryKey), ...name, ...table.related.flatMap(({ id }) => id)])];
}

/** The schema or database of a table's name. */
export function schemaOf(table: string): string {
  return table.slice(0, table.indexOf('.'));
}

/** Those of the columns that a mask of the table covers, in whole or in part. */
export function maskedColumns({ rules }: TableMapping, columns: readonly string[]): string[] {
  return columns.filter((column) => rules.mask.some(({ keys: [first] }) => first === null || first === column));
}
