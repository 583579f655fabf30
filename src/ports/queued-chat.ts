import type { Scope } from '../http/scopes.ts';

/** Who chats: what the change history tool may see is what this client may. */
export interface ChattingClient {
  readonly clientId: string;
  readonly clientName: string;
  readonly scopes: readonly Scope[];
}

/** A chat that runs by itself, as it is queued. */
export interface QueuedChat {
  readonly tenant: string;
  readonly agentId: string;
  readonly message: string;
  readonly sessionId: string;
  readonly requestId: string;
  /** The id of its request log; left out in chats that were queued before there was one: it is made when it runs. */
  readonly logId?: string | undefined;
  readonly credentials: ChattingClient;
}

/** What a chat that ran by itself was answered. */
export interface AnsweredChat {
  /** What `POST /chat` would have answered: anything that JSON has. */
  readonly response: unknown;
  /** Whether something of the change history is in it. */
  readonly fromHistory: boolean;
}

/**
 * Runs a queued chat. `callBegins` is awaited before the first call of a provider leaves: it rejects and gives the
 * signal where the job is gone, and from then on nobody runs the chat again. Throws AnnalsError for what the client is
 * told of a failure.
 */
export type RunQueuedChat = (
  chat: QueuedChat,
  run: { readonly signal: AbortSignal; callBegins(): Promise<void> },
) => Promise<AnsweredChat>;
