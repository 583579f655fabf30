import type { FailureCause } from '../../providers/failure-cause.ts';
import type { LoggedToolCall } from '../mcp/chat-tools.ts';
import type { LogMessage, RequestLogDocument, SessionLogDocument } from './answer-schemas.ts';
import type { TokenCounts } from './turn-store.ts';

export type Severity = LogMessage['severity'];

/** The totals of a session; `duration` is in milliseconds. */
export interface SessionSums extends TokenCounts {
  readonly duration: number;
}

/** A request to be logged; `duration` is in milliseconds. */
export interface LoggedRequest {
  readonly id: string;
  readonly requestId: string;
  readonly sessionId: string;
  readonly agentId: string;
  readonly messages: LogMessage[];
  readonly duration: number;
  readonly tokens: TokenCounts;
  readonly at: number;
  readonly cause?: FailureCause | undefined;
}

// A session has no end. Its log keeps the latest messages; older ones are in the logs of the requests.
const maxMessages = 500;
const maxMessageLength = 1_000;

/** A line of a request's log; `at` is in milliseconds since 1970. */
export function noteOf(noted: {
  severity: Severity;
  text: string;
  agentId: string;
  requestId: string;
  at: number;
  guarded?: boolean | undefined;
  toolCall?: LoggedToolCall | undefined;
}): LogMessage {
  const { severity, text, agentId, requestId, at, guarded = false, toolCall } = noted;
  // A model can write anything into a query. The log keeps the first characters, as valid text.
  const message = text.slice(0, maxMessageLength).toWellFormed();
  const line = { timestamp: new Date(at).toISOString(), severity, message, agentId, requestId };
  return { ...line, ...(guarded && { guarded }), ...(toolCall && { toolCall }) };
}

const withheld = 'A call of a tool. Only clients that may read the change history see its query and its result.';

/** The log for clients that may not read the change history; the same object if it contains none. */
export function withoutHistory<Log extends Pick<RequestLogDocument, 'messages'>>(log: Log): Log {
  if (!log.messages.some(({ guarded }) => guarded)) return log;
  return { ...log, messages: log.messages.map((line) => (line.guarded ? { ...line, message: withheld } : line)) };
}

/** `replaced` is an earlier, less complete log of the same request. */
export function requestLogOf(request: LoggedRequest, replaced?: RequestLogDocument): RequestLogDocument {
  const { id, requestId, sessionId, agentId, messages, duration, tokens, at, cause } = request;
  const time = new Date(at).toISOString();
  return {
    id,
    requestId,
    sessionId,
    triggerAgentId: agentId,
    severity: worst(messages.map(({ severity }) => severity)),
    ...(cause === undefined ? {} : { cause }),
    messages,
    duration: Math.ceil(duration / 1_000),
    durationMs: duration,
    promptTokens: tokens.prompt,
    completionTokens: tokens.completion,
    metadata: {
      version: (replaced?.metadata.version ?? 0) + 1,
      createdAt: replaced?.metadata.createdAt ?? time,
      modifiedAt: time,
    },
  };
}

/** The log of a session with another request, or with a new log replacing the request's earlier one. */
export function rolledUp(
  before: SessionLogDocument | undefined,
  request: RequestLogDocument,
  { sums, replaced }: { sums: SessionSums; replaced: RequestLogDocument | undefined },
): SessionLogDocument {
  const stale = new Set(replaced?.messages.map((line) => JSON.stringify(line)));
  const earlier = (before?.messages ?? []).filter((line) => !stale.has(JSON.stringify(line)));
  const { sessionId, triggerAgentId, severity, messages, metadata } = request;
  return {
    id: sessionId,
    sessionId,
    triggerAgentId: before?.triggerAgentId ?? triggerAgentId,
    severity: worst([severity, ...(replaced === undefined ? [before?.severity ?? 'INFO'] : earlier.map(severityOf))]),
    agents: [...new Set([...(before?.agents ?? []), triggerAgentId])],
    messages: [...earlier, ...messages].slice(-maxMessages),
    duration: Math.ceil(sums.duration / 1_000),
    durationMs: sums.duration,
    promptTokens: sums.prompt,
    completionTokens: sums.completion,
    metadata: {
      version: (before?.metadata.version ?? 0) + 1,
      createdAt: before?.metadata.createdAt ?? metadata.createdAt,
      modifiedAt: metadata.modifiedAt,
    },
  };
}

function severityOf(line: LogMessage): Severity {
  return line.severity;
}

function worst(severities: readonly Severity[]): Severity {
  const order: readonly Severity[] = ['ERROR', 'WARNING', 'INFO'];
  return order.find((severity) => severities.includes(severity)) ?? 'INFO';
}
