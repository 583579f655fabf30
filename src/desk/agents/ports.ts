import type { StopSignal } from '../../core/stop-signal.ts';
import type { Caller } from '../../http/credentials.ts';
import type { Scope } from '../../http/scopes.ts';
import type { DatabaseTransaction } from '../../postgres/database.ts';
import type { ChattingClient } from '../queued-chat.ts';

/**
 * Runs a change history query as the API does. Throws AnnalsError for an invalid query, and the signal's reason after
 * an abort.
 */
export type AskHistory = (
  tenant: string,
  query: { q: string; page: number; size: number; maxBytes: number; signal?: StopSignal | undefined },
  reader: HistoryReader,
) => Promise<AnsweredHistory>;

/** The reader of the history through the agent: the chatting client, and the address of its request. */
export interface HistoryReader extends ChattingClient {
  readonly caller?: Caller | undefined;
}

export interface AnsweredHistory {
  /** JSON text with the first entries of the page that fit into `maxBytes`. */
  readonly text: string;
  readonly shown: number;
  /** The number of entries of the page that were left out. */
  readonly left: number;
  /** The number of entries shown in part, because each exceeds `maxBytes`. */
  readonly cut: number;
  readonly total: number;
}

/** Queues an e-mail, sent only if the transaction commits. */
export type QueueMail = (
  transaction: DatabaseTransaction,
  mail: { tenant: string; to: string; subject: string; text: string; messageId: string },
) => Promise<void>;

/** The current scopes of a client; undefined for a revoked or deleted one. */
export type ScopesNow = (tenant: string, clientId: string) => Promise<readonly Scope[] | undefined>;

/** The reader of logs. Without a changelog scope nothing of the change history is visible. */
export interface LogReader {
  readonly tenant: string;
  readonly readsHistory: boolean;
}
