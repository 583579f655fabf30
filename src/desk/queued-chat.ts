import type { Credentials } from '../http/credentials.ts';
import type { DatabaseTransaction } from '../postgres/database.ts';

/** The chatting client. The change history tool has its permissions. */
export interface ChattingClient extends Pick<Credentials, 'clientId' | 'clientName' | 'person' | 'scopes'> {}

/** A chat in the queue, which runs in the background. */
export interface QueuedChat {
  readonly tenant: string;
  readonly agentId: string;
  readonly message: string;
  readonly sessionId: string;
  readonly requestId: string;
  /** The id of its request log. */
  readonly logId: string;
  /** Its place in its session. Left out in chats that take their place when they run. */
  readonly place?: number | undefined;
  readonly credentials: ChattingClient;
}

/** The answer of a chat that ran in the background. */
export interface AnsweredChat {
  /** The agent's answer. */
  readonly message: string;
  /** The response of `POST /chat`: any JSON value. */
  readonly response: unknown;
  /** Whether the answer contains data of the change history. */
  readonly fromHistory: boolean;
}

/**
 * Runs a queued chat, awaiting `callBegins` before the first call of a provider. `callBegins` rejects and aborts the
 * signal if the job is gone; after it resolves, the chat is never repeated. Throws AnnalsError with the error for the
 * client.
 */
export type RunQueuedChat = (
  chat: QueuedChat,
  run: { readonly signal: AbortSignal; callBegins(): Promise<void> },
) => Promise<AnsweredChat>;

/** The queue of chats that run in the background. */
export interface ChatQueue {
  /**
   * Creates a job that runs the chat after the transaction has committed, and returns its id. With `guardsMessage` the
   * message may quote the change history and is visible only to clients that may read that. Throws rate_limit_exceeded
   * if too many of the tenant's jobs wait.
   */
  enqueueAgentChat(
    transaction: DatabaseTransaction,
    chat: QueuedChat,
    options: { guardsMessage: boolean },
  ): Promise<string>;
  /** Makes this process poll for queued chats now. Call it after their transaction has committed. */
  wakeAgentChats(tenant: string): void;
}
