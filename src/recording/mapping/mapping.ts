import type { PathPattern } from '../../core/path-pattern.ts';
import type { FormerColumns } from './former-columns.ts';

/** The paths of a document that are dropped, and those recorded as `********`. */
export interface ValueRules {
  readonly ignore: readonly PathPattern[];
  readonly mask: readonly PathPattern[];
}

/** One tenant, or the tenant that a column or the table's schema names. */
export type TenantRule =
  | { readonly kind: 'value'; readonly tenant: string }
  | { readonly kind: 'column'; readonly column: string }
  | { readonly kind: 'schema' };

/** How the rows of one table become documents. */
export interface TableMapping {
  /** The name in the mapping: `schema.table`. */
  readonly table: string;
  readonly entity: string;
  /** The columns of the id. Undefined: the primary key. */
  readonly id: readonly string[] | undefined;
  readonly name: string | undefined;
  readonly actor: string | undefined;
  /** The column of a new row that names the actor of its transaction, if nothing else does. */
  readonly transactionActor: string | undefined;
  /** A text for all rows, or the column that has it. */
  readonly schemaVersion: { readonly value?: string; readonly column?: string } | undefined;
  readonly related: readonly { readonly entity: string; readonly id: readonly string[] }[];
  /** The rules of the table and its entity, for all names of each column. */
  readonly rules: ValueRules;
  /** The rules of the table only, by current column names. */
  readonly own: ValueRules;
  readonly former: FormerColumns;
  /** Text columns parsed as JSON. */
  readonly json: ReadonlySet<string>;
  /** Members of the context, and the column of each. */
  readonly context: ReadonlyMap<string, string>;
  readonly truncate: 'deletes' | 'ignore';
  readonly snapshot: boolean;
}

/** A validated mapping (recording.md 3). */
export interface Mapping {
  /** Undefined if the source of the changes names the tenant. */
  readonly tenant: TenantRule | undefined;
  /** Tenants by value of the column or schema. Any other value is the tenant itself. */
  readonly tenants: ReadonlyMap<string, string>;
  /** The accepted names of Debezium sources. Undefined: any. */
  readonly sources: ReadonlySet<string> | undefined;
  readonly tables: ReadonlyMap<string, TableMapping>;
  /** Rules for documents by their entity. */
  readonly entities: ReadonlyMap<string, ValueRules>;
}

/** The required columns of a table: they name the tenant, the document and its related ones. */
export function keyColumns(mapping: Mapping, table: TableMapping, primaryKey: readonly string[]): string[] {
  const tenant = mapping.tenant?.kind === 'column' ? [mapping.tenant.column] : [];
  const name = table.name === undefined ? [] : [table.name];
  return [...new Set([...tenant, ...(table.id ?? primaryKey), ...name, ...table.related.flatMap(({ id }) => id)])];
}

/** The schema or database of a table's name. */
export function schemaOf(table: string): string {
  return table.slice(0, table.indexOf('.'));
}

/** The columns that a mask covers, in whole or in part. */
export function maskedColumns({ rules }: TableMapping, columns: readonly string[]): string[] {
  return columns.filter((column) => rules.mask.some(({ keys: [first] }) => first === null || first === column));
}
