import type { RawBuilder, SqlBool } from 'kysely';
import type { DatabaseTransaction } from '../db/database.ts';
import type { Scope } from '../http/scopes.ts';
import type { Page, PageWanted } from '../pagination/paginator.ts';
import type { StopSignal } from '../stop-signal.ts';

/** What this room is handed of others by context.ts. */
export interface DocumentLists {
  /** A page of rows with `id`, `document` and `fields`, each as JSON text: `q` and `fields` as contracts 9 and 10 have them. */
  page(rows: DocumentRows, asked: AskedOfList, wanted: PageWanted): Promise<Page<string>>;
}

export interface DocumentRows {
  readonly from: RawBuilder<unknown>;
  readonly where: RawBuilder<SqlBool>;
}

export interface AskedOfList {
  readonly q?: string | undefined;
  readonly fields?: string | undefined;
}

/**
 * A change history query as its own operation answers it, as JSON text. Throws AnnalsError for what is wrong with it, and
 * the signal's reason where that was given meanwhile.
 */
export type AskHistory = (
  tenant: string,
  query: { q: string; page: number; size: number; signal?: StopSignal | undefined },
) => Promise<string>;

/** Queues one e-mail, for good once the transaction is. */
export type QueueMail = (
  transaction: DatabaseTransaction,
  mail: { tenant: string; to: string; subject: string; text: string; messageId: string },
) => Promise<void>;

/** Chats that run by themselves. */
export interface JobQueue {
  /**
   * Answers the id of the job, which runs `runChat` with what it is given once the transaction is committed.
   * `guardsMessage`: only clients that may read the change history are shown the message.
   */
  enqueueAgentChat(
    transaction: DatabaseTransaction,
    chat: QueuedChat,
    options: { guardsMessage: boolean },
  ): Promise<string>;
  /** Says that the transaction is committed. */
  wakeAgentChats(): void;
}

export interface QueuedChat {
  readonly tenant: string;
  readonly agentId: string;
  readonly message: string;
  readonly sessionId: string;
  readonly requestId: string;
  readonly credentials: ChattingClient;
}

/** What a client is granted at this moment; undefined where it has been revoked, or is gone. */
export type ScopesNow = (tenant: string, clientId: string) => Promise<readonly Scope[] | undefined>;

/** Who reads logs. Without a changelog scope, nothing that tells of the change history. */
export interface LogReader {
  readonly tenant: string;
  readonly readsHistory: boolean;
}

/** Who chats: what the change history tool may see is what this client may. */
export interface ChattingClient {
  readonly clientId: string;
  readonly clientName: string;
  readonly scopes: readonly Scope[];
}
