import type { Credentials } from '../http/credentials.ts';
import type { DatabaseTransaction } from '../postgres/database.ts';

/** The client that chats. The change history tool sees only what this client may see. */
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
  /** What the agent answered. */
  readonly message: string;
  /** The answer that `POST /chat` would have given: any JSON value. */
  readonly response: unknown;
  /** Whether the answer contains data of the change history. */
  readonly fromHistory: boolean;
}

/**
 * Runs a queued chat. It awaits `callBegins` before the first call of a provider. `callBegins` rejects and aborts the
 * signal where the job is gone. After it has resolved, nobody runs the chat again. Throws AnnalsError with the error
 * for the client.
 */
export type RunQueuedChat = (
  chat: QueuedChat,
  run: { readonly signal: AbortSignal; callBegins(): Promise<void> },
) => Promise<AnsweredChat>;

/** The queue of chats that run in the background. */
export interface ChatQueue {
  /**
   * Creates a job that runs the chat after the transaction has committed, and returns its id. With `guardsMessage` the
   * message may quote the change history, so only clients that may read that see it. Throws rate_limit_exceeded where
   * the tenant has too many waiting jobs.
   */
  enqueueAgentChat(
    transaction: DatabaseTransaction,
    chat: QueuedChat,
    options: { guardsMessage: boolean },
  ): Promise<string>;
  /** Lets this process look for queued chats at once. Call it after their transaction has committed. */
  wakeAgentChats(tenant: string): void;
}
