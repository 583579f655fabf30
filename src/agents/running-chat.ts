import type { QueuedChat } from '../ports/queued-chat.ts';
import type { AgentDocument } from './agent-document.ts';
import type { AgentRow } from './agent-store.ts';
import type { LogMessage } from './request-log.ts';
import type { TurnName } from './turn-store.ts';

export interface ChatRequest extends QueuedChat {
  /**
   * Given when nobody wants the answer any more. Aborts the call to the provider, or its tool's query; what was used is
   * settled and logged all the same, and so is the message of the reason, which is to be an error of our own.
   */
  readonly signal?: AbortSignal | undefined;
  /** Told the answer piece by piece. */
  readonly onText?: ((text: string) => Promise<void> | void) | undefined;
  /** Awaited before each call of the provider, the first being 0. The call does not leave where it rejects. */
  readonly beforeCall?: ((round: number) => Promise<void>) | undefined;
}

/** A chat that has its place in its session. */
export interface RunningChat {
  readonly request: ChatRequest;
  /** The id of its request log. */
  readonly logId: string;
  readonly agent: AgentRow;
  readonly document: AgentDocument;
  readonly turn: TurnName;
  /** In milliseconds of performance.now(). */
  readonly began: number;
  /** What its calls have used so far. */
  readonly tokens: { prompt: number; completion: number };
  /** The lines of its log so far. */
  readonly messages: LogMessage[];
}
