import type { Caller } from '../../http/caller.ts';
import type { OnText } from '../../providers/port.ts';
import type { QueuedChat } from '../queued-chat.ts';
import type { AgentRow } from './agent-store.ts';
import type { AgentHead } from './agent-texts.ts';
import type { LogMessage } from './answer-schemas.ts';
import type { TurnName } from './turn-store.ts';

export interface ChatRequest extends QueuedChat {
  /**
   * Cancels the chat. The abort ends the call to the provider, or the tool's query. The service still settles and logs
   * the tokens. It also logs the message of the abort reason, so the reason must be one of the service's own errors.
   */
  readonly signal?: AbortSignal | undefined;
  /** Where the request came from; left out in chats by a job, whose queue keeps no addresses. */
  readonly caller?: Caller | undefined;
  /** Receives each part of the answer. */
  readonly onText?: OnText | undefined;
  /** Called when the request has its place in its session. */
  readonly onAccepted?: (() => void) | undefined;
  /** Awaited before each call of the provider; the first round is 0. If it rejects, the call is not sent. */
  readonly beforeCall?: ((round: number) => Promise<void>) | undefined;
}

/** A chat that has its position in its session. */
export interface RunningChat {
  readonly request: ChatRequest;
  /** The id of its request log. */
  readonly logId: string;
  /** Read again after a wait for earlier requests of the session. */
  agent: AgentRow & { readonly head: AgentHead };
  readonly turn: TurnName;
  /** In milliseconds of performance.now(). */
  readonly began: number;
  /** Whether a call of the provider may have left. */
  hasCalled: boolean;
  /** The tokens of its calls so far: what the quota was charged, or what the provider of an own key reported. */
  readonly tokens: { prompt: number; completion: number };
  /** The lines of its log so far. */
  readonly messages: LogMessage[];
}
