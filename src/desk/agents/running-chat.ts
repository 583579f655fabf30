import type { Caller } from '../../http/credentials.ts';
import type { OnText } from '../../providers/port.ts';
import type { QueuedChat } from '../queued-chat.ts';
import type { AgentRow } from './agent-store.ts';
import type { AgentHead } from './agent-texts.ts';
import type { LogMessage } from './answer-schemas.ts';
import type { TurnName } from './turn-store.ts';

export interface ChatRequest extends QueuedChat {
  /**
   * Cancels the chat: aborts the call to the provider or the tool's query. Tokens are still settled and logged. The
   * abort reason's message is logged too, so it must be one of the service's own errors.
   */
  readonly signal?: AbortSignal | undefined;
  /** The network address of the request; left out for chat jobs, whose queue stores none. */
  readonly caller?: Caller | undefined;
  /** Receives each part of the answer. */
  readonly onText?: OnText | undefined;
  /** Called when the request has its position in its session. */
  readonly onAccepted?: (() => void) | undefined;
  /** Awaited before each call of the provider; the first round is 0. If it rejects, the call is not sent. */
  readonly beforeCall?: ((round: number) => Promise<void>) | undefined;
}

/** A chat that has its position in its session. */
export interface RunningChat {
  readonly request: ChatRequest;
  /** The id of its request log. */
  readonly logId: string;
  /** Read again after waiting for earlier requests of the session. */
  agent: AgentRow & { readonly head: AgentHead };
  readonly turn: TurnName;
  /** In milliseconds of performance.now(). */
  readonly began: number;
  /** Whether a call of the provider may have been sent. */
  hasCalled: boolean;
  /** The tokens of its calls so far: charged to the quota, or reported by the provider for an own key. */
  readonly tokens: { prompt: number; completion: number };
  /** The lines of its log so far. */
  readonly messages: LogMessage[];
}
