export type ExportFormat = 'NDJSON' | 'CSV';

/** Which entries an export is made of. */
export interface ExportSnapshot {
  /** PostgreSQL's text of a pg_snapshot. */
  readonly snapshot: string;
  /** Milliseconds since 1970. */
  readonly since: number;
}

/** How far an export has come: its snapshot, and the last entry that is in the file. */
export interface ExportProgress extends ExportSnapshot {
  readonly after: { readonly at: number; readonly sequence: number };
}

export interface ExportRequest {
  readonly tenant: string;
  readonly q: string;
  readonly format: ExportFormat;
  /** When it was asked for, in milliseconds since 1970: the default window ends there. */
  readonly askedAt: number;
  /** How far an earlier attempt got. */
  readonly resume?: ExportProgress | undefined;
  /** Stops the export, in the middle of a statement too. */
  readonly signal: AbortSignal;
}

/** A piece of an export's file. */
export interface ExportPiece {
  readonly text: string;
  readonly entries: number;
  /** The last entry in it. */
  readonly last: ExportProgress['after'];
  readonly of: ExportSnapshot;
  /** Nothing of an earlier attempt counts any more: this is the file's first piece. */
  readonly isFirst: boolean;
}

/** Whole results of queries of the change history. */
export interface ExportHistory {
  /** Throws AnnalsError where the query is not one. */
  check(q: string): void;
  /**
   * Hands out the whole result of a query in pieces of some 1 MiB, newest first, all of one snapshot. A piece is asked
   * for only when the one before has been taken.
   */
  run(request: ExportRequest, take: (piece: ExportPiece) => Promise<void>): Promise<void>;
}
