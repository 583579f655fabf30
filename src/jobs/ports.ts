import type { RawBuilder, SqlBool } from 'kysely';
import type { Scope } from '../http/scopes.ts';
import type { Page, PageWanted } from '../pagination/paginator.ts';

/** What this room is handed of others by context.ts. */
export interface DocumentLists {
  /** A page of rows with `id`, `document` and `fields`, each as JSON text. */
  page(
    rows: { readonly from: RawBuilder<unknown>; readonly where: RawBuilder<SqlBool> },
    asked: { readonly q?: string | undefined; readonly fields?: string | undefined },
    wanted: PageWanted,
  ): Promise<Page<string>>;
}

export type ExportFormat = 'NDJSON' | 'CSV';

/** How far an export has come: of which snapshot its entries are, and the last that is in the file. */
export interface ExportProgress {
  /** PostgreSQL's text of a pg_snapshot. */
  readonly snapshot: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly after: { readonly at: number; readonly sequence: number };
}

export interface ExportPiece {
  readonly text: string;
  readonly entries: number;
  readonly last: { readonly at: number; readonly sequence: number };
  readonly of: { readonly snapshot: string; readonly since: number };
  /** Nothing that is in the file counts any more. */
  readonly isFirst: boolean;
}

/** The change history, whole results of queries of it. */
export interface ExportHistory {
  /** Throws AnnalsError where the query is not one. */
  check(q: string): void;
  run(
    request: {
      tenant: string;
      q: string;
      format: ExportFormat;
      askedAt: number;
      resume?: ExportProgress | undefined;
      signal: AbortSignal;
    },
    take: (piece: ExportPiece) => Promise<void>,
  ): Promise<void>;
}

/** A chat that runs by itself. */
export interface QueuedChat {
  readonly tenant: string;
  readonly agentId: string;
  readonly message: string;
  readonly sessionId: string;
  readonly requestId: string;
  readonly credentials: {
    readonly clientId: string;
    readonly clientName: string;
    readonly scopes: readonly Scope[];
  };
}

/** How a chat was answered. */
export interface AnsweredChat {
  /** What `POST /chat` would have answered: anything that JSON has. */
  readonly response: unknown;
  /** Whether something of the change history is in it. */
  readonly fromHistory: boolean;
}

/** Who reads jobs. Without a changelog scope, nothing that tells of the change history (contract 8). */
export interface JobReader {
  readonly tenant: string;
  readonly readsHistory: boolean;
}

/**
 * Runs a chat. To be awaited before the first call to a vendor goes out: `callBegins`, which rejects and gives
 * the signal where the job is gone; from then on nobody runs it again. Throws AnnalsError for what the client is told of a failure.
 */
export type RunChat = (
  chat: QueuedChat,
  run: { readonly signal: AbortSignal; callBegins(): Promise<void> },
) => Promise<AnsweredChat>;
