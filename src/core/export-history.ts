import type { WrittenRestriction } from './written-restriction.ts';

export type ExportFormat = 'NDJSON' | 'CSV';

/** What a row of a CSV file is: a change, or one path of a change. */
export type ExportRows = 'change' | 'field';

/** Defines the entries of an export. */
export interface ExportSnapshot {
  /** The text form of a pg_snapshot. */
  readonly snapshot: string;
  /** Where the cluster had the tenant, the only place in which the snapshot is meaningful; null on one server. */
  readonly placement: string | null;
  /** Milliseconds since 1970. */
  readonly since: number;
}

/** The progress of an export: its snapshot, and the last entry in the file. */
export interface ExportProgress extends ExportSnapshot {
  readonly after: ExportedPlace;
}

interface ExportedPlace {
  readonly at: number;
  readonly sequence: number;
  /** With a row for each path: the number of the last path in the file. */
  readonly path?: number | undefined;
}

export interface ExportRequest {
  readonly tenant: string;
  readonly q: string;
  readonly format: ExportFormat;
  /** Of a CSV file; default: `change`. */
  readonly rows?: ExportRows | undefined;
  /** Whether a CSV file begins with a byte order mark; default: no. */
  readonly bom?: boolean | undefined;
  /** Whether the file has each entry's context and recorder; default: no. */
  readonly withContext?: boolean;
  /** Whether `q` may have terms on contexts: the right of its client now; default: no. */
  readonly readsContext?: boolean;
  /** Whether the file is a bundle with its proof (format NDJSON); default: no. */
  readonly proof?: boolean;
  /** What the client may see; default: everything. */
  readonly restriction?: readonly WrittenRestriction[] | undefined;
  /** The client whose export it is: to it a restriction's correlation ids are sealed. */
  readonly clientId?: string | undefined;
  /** When the client requested the export, in milliseconds since 1970. The default window ends there. */
  readonly askedAt: number;
  /** The progress of an earlier attempt. */
  readonly resume?: ExportProgress | undefined;
  /** Cancels the export, even during a statement. */
  readonly signal: AbortSignal;
}

/** A part of an export's file. */
export interface ExportPiece {
  readonly text: string;
  /** Entries that begin in the part. */
  readonly entries: number;
  /** The last entry of the part. */
  readonly last: ExportProgress['after'];
  readonly of: ExportSnapshot;
  /** Whether this is the file's first part: then parts of earlier attempts are void. */
  readonly isFirst: boolean;
}

/** Complete results of change history queries. */
export interface ExportHistory {
  /**
   * Whether a query has terms on contexts. Throws AnnalsError for an invalid query, or one on contexts of a caller who
   * may not read them.
   */
  check(q: string, reader: { readonly readsContext?: boolean }): { readonly usesContext: boolean };
  /**
   * Passes the complete result of a query to `take`, in parts of about 1 MiB, newest first, from one snapshot. Reads
   * the next part only after `take` has finished. Throws insufficient_permissions for terms on contexts without
   * `readsContext`.
   */
  run(request: ExportRequest, take: (piece: ExportPiece) => Promise<void>): Promise<void>;
}
