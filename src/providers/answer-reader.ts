import { memberOf } from './members.ts';
import type { Answer } from './port.ts';

/**
 * The content of a vendor's answer or stream event. Compatible servers differ in what they omit or add, so a reader
 * takes what Annals uses and writes it as the provider package expects it: what the package would reject never reaches
 * it.
 */
export type ReadResult =
  /** `value` is for the provider package; left out where the package needs nothing. */
  | { is: 'answer'; value?: object }
  /** The vendor reports a failure, with the HTTP status that it would have sent before the answer began. */
  | { is: 'error'; status: number }
  /** Not in the vendor's format, or an event of an unknown type. */
  | { is: 'unknown' };

/** The content of a non-streamed answer. `whole`: the provider package has nothing to read. */
export type WholeResult = ReadResult | { is: 'whole'; answer: WholeAnswer };

/** An answer without its figures. */
export type WholeAnswer = Pick<Answer, 'text' | 'toolCalls' | 'finishReason' | 'unreadToolCalls'>;

export interface StreamReader {
  read(event: unknown): ReadResult;
  /** Whether the vendor has marked its answer as complete. */
  readonly isComplete: boolean;
  /** Reads `[DONE]`, the end mark of the chat completions format. Returns what the package still needs. */
  done?(): object | undefined;
}

export interface AnswerReader {
  /** Reads a non-streamed answer, with at most `maxToolCalls` tool calls. */
  whole(answer: unknown, maxToolCalls: number): WholeResult;
  stream(): StreamReader;
  /** The member that contains a tool call's input as an object; left out: none does. */
  readonly inputMember?: string;
}

export const unknown: ReadResult = { is: 'unknown' };

// A vendor that fails after its answer has begun sends no status. The type of its error implies one.
const statuses: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  RESOURCE_EXHAUSTED: 429,
  insufficient_quota: 429,
};
export const defaultStatus = 500;

/** The error that an answer or an event reports; undefined without one. */
export function errorIn(value: unknown): ReadResult | undefined {
  const error = memberOf(value, 'error');
  const isError = memberOf(value, 'object') === 'error' || memberOf(value, 'type') === 'error';
  if (!isError && (error === undefined || error === null || error === '' || error === false)) return undefined;
  const reported = isError && error === undefined ? value : error;
  for (const name of ['code', 'status', 'type']) {
    const status = statusOf(memberOf(reported, name));
    if (status !== undefined) return { is: 'error', status };
  }
  return { is: 'error', status: defaultStatus };
}

/** The status of the error that an answer or an event reports; undefined without one. */
export function errorStatus(value: unknown): number | undefined {
  const error = errorIn(value);
  return error?.is === 'error' ? error.status : undefined;
}

function statusOf(value: unknown): number | undefined {
  if (typeof value === 'string' && Object.hasOwn(statuses, value)) return statuses[value];
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === 'number' && status >= 400 && status <= 599 ? status : undefined;
}

/** The text of a content: a text or a list of parts. */
export function textIn(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (typeof part === 'string' ? part : stringOr(memberOf(part, 'text'), ''))).join('');
}

export function stringOr<Fallback>(value: unknown, fallback: Fallback): string | Fallback {
  return typeof value === 'string' ? value : fallback;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
