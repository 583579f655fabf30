import type { PathPattern } from '../../core/path-pattern.ts';

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

/** A text for all rows, or the column that has it. */
export interface ColumnOrValue {
  readonly value?: string;
  readonly column?: string;
}

/** A part of who made a change, as the mapping names it. */
export type WhoPart = 'actor' | 'actorId' | 'onBehalfOf.name' | 'onBehalfOf.id';

/** Where a row has each part. Empty: nowhere. */
export type WhoColumns = ReadonlyMap<WhoPart, ColumnOrValue>;

/** How the rows of one table become documents. */
export interface TableMapping {
  /** The name in the mapping: `schema.table`. */
  readonly table: string;
  readonly entity: string;
  /** The columns of the id. Undefined: the primary key. */
  readonly id: readonly string[] | undefined;
  readonly name: string | undefined;
  /** Who changed the row. */
  readonly who: WhoColumns;
  /** Who made the transaction of a new row, if nothing else names them. Columns only. */
  readonly transactionActor: WhoColumns;
  readonly correlationId: ColumnOrValue | undefined;
  readonly schemaVersion: ColumnOrValue | undefined;
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
  /** The entity type of the people that actor ids identify. */
  readonly people: string | undefined;
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

/** The columns that say who, each with its member of the mapping. */
export function columnsOfWho(who: WhoColumns): [use: WhoPart, column: string][] {
  return [...who].flatMap(([part, { column }]): [WhoPart, string][] => (column === undefined ? [] : [[part, column]]));
}

/** The schema or database of a table's name. */
export function schemaOf(table: string): string {
  return table.slice(0, table.indexOf('.'));
}

/** The columns that a mask covers, in whole or in part. */
export function maskedColumns({ rules }: TableMapping, columns: readonly string[]): string[] {
  return columns.filter((column) => rules.mask.some(({ keys: [first] }) => first === null || first === column));
}

/** Former columns of a table, as the mapping names them. */
export interface FormerColumns {
  /** The last name of each column. */
  readonly names: ReadonlyMap<string, string>;
  /** Last names of columns that were dropped. */
  readonly dropped: ReadonlySet<string>;
}

export const noFormer: FormerColumns = { names: new Map(), dropped: new Set() };

/** Resolves each column to its last name; null: dropped. Returns a name that is part of a cycle, if there is one. */
export function readFormer(columns: Readonly<Record<string, string | null>>): FormerColumns | string {
  const renamed = new Map(Object.entries(columns));
  const names = new Map<string, string>();
  for (const column of renamed.keys()) {
    const seen = [column];
    for (let next = renamed.get(column); typeof next === 'string'; next = renamed.get(next)) {
      if (seen.includes(next)) return next;
      seen.push(next);
    }
    names.set(column, seen.at(-1) ?? column);
  }
  const dropped = [...names.values()].filter((name) => renamed.get(name) === null);
  return { names, dropped: new Set(dropped) };
}

/** The current name of a column, or the last name of a dropped one. */
export function nameToday({ names }: FormerColumns, column: string): string {
  return names.get(column) ?? column;
}

/** All names of a column, current and former. */
export function namesOf(former: FormerColumns, column: string): string[] {
  const today = nameToday(former, column);
  const earlier = [...former.names].filter(([name, last]) => last === today && name !== today);
  return [today, ...earlier.map(([name]) => name)];
}

/** The patterns for all names of their columns. */
export function underAllNames(patterns: readonly PathPattern[], former: FormerColumns): PathPattern[] {
  return patterns.flatMap((pattern) => {
    const [column, ...rest] = pattern.keys;
    if (column === undefined || column === null) return [pattern];
    return namesOf(former, column).map((name) => {
      const keys = [name, ...rest];
      return name === column ? pattern : { text: textOf(keys), keys };
    });
  });
}

/** The pattern with the current name of its column. */
export function patternToday(pattern: PathPattern, former: FormerColumns): PathPattern {
  return underAllNames([pattern], former)[0] ?? pattern;
}

function textOf(keys: PathPattern['keys']): string {
  return keys.map((key) => key?.replace(/[.\\]|^\*$/g, '\\$&') ?? '*').join('.');
}
