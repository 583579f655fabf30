import type { Change, ChangeType } from '../change.ts';

/**
 * One side of a changed row: the JSON text of each column's value. `undefined` stands for a value that the source did not give, for
 * instance an unchanged TOASTed one. A column that the source does not tell of at all is not in the map.
 */
export type Row = ReadonlyMap<string, string | undefined>;

/** One value of a document that is known to have changed. `after` is JSON text; undefined: the value is gone. */
export interface ChangedValue {
  readonly keys: readonly string[];
  readonly after: string | undefined;
}

/** A change of one row, as the source tells it. */
export interface RowChange {
  /** As the mapping has it: `schema.table`. */
  readonly table: string;
  readonly type: ChangeType;
  /** May be left out, or have the columns of the replica identity alone. */
  readonly before?: Row | undefined;
  /** Whether `before` is the whole row, although it may lack columns that `after` has: documents without a schema. */
  readonly isBeforeWhole?: boolean | undefined;
  readonly after?: Row | undefined;
  /** For an update of which only these new values are known: `after` has the id and the columns that are known besides. */
  readonly values?: readonly ChangedValue[] | undefined;
  /** In whole milliseconds since 1970. */
  readonly at: number;
  /** Who made it, as the transaction says. It comes before the table's column. */
  readonly actor?: string | undefined;
  /** JSON text of an object, as the transaction says. Its members come before those of the table's columns. */
  readonly context?: string | undefined;
  /** 16 bytes. The two changes of a row that got another id get identities made of it. */
  readonly identity: Uint8Array;
  /** The columns of the id where the mapping names none. */
  readonly primaryKey?: readonly string[] | undefined;
}

/** What became of a row's change. */
export type MappedChange =
  | {
      readonly kind: 'change';
      /** As the mapping tells it. Whether there is such a tenant, the recorder knows. Undefined: the mapping names none. */
      readonly tenant: string | undefined;
      readonly change: Change;
      /** Whether the row or its transaction says who made the change. Otherwise `change.actor` is the default. */
      readonly hasActor: boolean;
      /** It is an update, and the source did not give the whole row before it. */
      readonly lacksBefore?: boolean | undefined;
    }
  | { readonly kind: 'unchanged'; readonly tenant: string | undefined }
  | {
      readonly kind: 'rejected';
      readonly tenant: string | undefined;
      /** Names tables and columns, never values. */
      readonly reason: string;
      /** The change as JSON text, masked and without what the mapping ignores. `readRejectedRow` reads it. */
      readonly content: string;
    };

/** A row as a document that exists, for a snapshot. */
export type MappedDocument =
  | {
      readonly kind: 'document';
      readonly tenant: string | undefined;
      /** JSON text, masked. */
      readonly document: string;
      /** The change that creates it. An update of it takes the same members and other `paths`. */
      readonly change: Change;
    }
  | Extract<MappedChange, { kind: 'rejected' }>;
