import type { DatabaseTransaction } from '../db/database.ts';
import type { Scope } from '../http/scopes.ts';
import type { QueuedChat } from '../ports/queued-chat.ts';
import type { StopSignal } from '../stop-signal.ts';

/**
 * A change history query as its own operation answers it. Throws AnnalsError for what is wrong with it, and
 * the signal's reason where that was given meanwhile.
 */
export type AskHistory = (
  tenant: string,
  query: { q: string; page: number; size: number; maxBytes: number; signal?: StopSignal | undefined },
) => Promise<AnsweredHistory>;

export interface AnsweredHistory {
  /** JSON text, with as many of the page's first entries as have at most `maxBytes` together. */
  readonly text: string;
  readonly shown: number;
  /** Entries of the page that are not shown. */
  readonly left: number;
  readonly total: number;
}

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

/** What a client is granted at this moment; undefined where it has been revoked, or is gone. */
export type ScopesNow = (tenant: string, clientId: string) => Promise<readonly Scope[] | undefined>;

/** Who reads logs. Without a changelog scope, nothing that tells of the change history. */
export interface LogReader {
  readonly tenant: string;
  readonly readsHistory: boolean;
}
