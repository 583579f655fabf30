import type { Change, ChangeType } from '../change.ts';

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
  /** For an update with only these new values known. `after` has the id and other known columns. */
  readonly values?: readonly ChangedValue[] | undefined;
  /** In whole milliseconds since 1970. */
  readonly at: number;
  /** The transaction's actor, which takes precedence over the table's column. */
  readonly actor?: string | undefined;
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
      /** Whether the row or its transaction names the actor. Otherwise `change.actor` is the default. */
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
