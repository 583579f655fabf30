import type { StopSignal } from '../../core/stop-signal.ts';
import type { Caller } from '../../http/caller.ts';
import type { Scope } from '../../http/scopes.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { ChattingClient } from '../queued-chat.ts';

/**
 * Runs a change history query as the endpoint for such queries does. Throws AnnalsError for an invalid query, and the
 * signal's reason after an abort.
 */
export type AskHistory = (
  tenant: string,
  query: { q: string; page: number; size: number; maxBytes: number; signal?: StopSignal | undefined },
  reader: HistoryReader,
) => Promise<AnsweredHistory>;

/** Who reads the history by the agent: the client that chats, and where its request came from. */
export interface HistoryReader extends Pick<ChattingClient, 'clientId' | 'clientName' | 'person'> {
  readonly caller?: Caller | undefined;
}

export interface AnsweredHistory {
  /** JSON text with the first entries of the page, as many as fit into `maxBytes`. */
  readonly text: string;
  readonly shown: number;
  /** The number of entries of the page that were left out. */
  readonly left: number;
  /** The number of entries that are shown in part, because each is longer than `maxBytes`. */
  readonly cut: number;
  readonly total: number;
}

/** Queues one e-mail. It is sent only if the transaction commits. */
export type QueueMail = (
  transaction: DatabaseTransaction,
  mail: { tenant: string; to: string; subject: string; text: string; messageId: string },
) => Promise<void>;

/** The current scopes of a client; undefined where the client is revoked or deleted. */
export type ScopesNow = (tenant: string, clientId: string) => Promise<readonly Scope[] | undefined>;

/** The reader of logs. Without a changelog scope the reader sees nothing that tells of the change history. */
export interface LogReader {
  readonly tenant: string;
  readonly readsHistory: boolean;
}
