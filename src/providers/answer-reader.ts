import { memberOf } from './members.ts';
import type { Answer } from './port.ts';

/**
 * What is in an answer of a vendor, or in an event of its stream. Servers that speak a vendor's format differ in what they
 * leave out or add. So a reader takes what Annals uses and writes it as the provider package expects it: what the package
 * would refuse, and nobody needs, never reaches it.
 */
export type Read =
  /** `value` is for the provider package; left out where the event has nothing for it. */
  | { is: 'answer'; value?: object }
  /** The vendor says that it failed, with the HTTP status that it would have sent before its answer began. */
  | { is: 'error'; status: number }
  /** Not in the vendor's format, or an event of an unknown type. */
  | { is: 'unknown' };

/** What is in an answer in one piece. `whole`: the provider package has nothing to read. */
export type ReadWhole = Read | { is: 'whole'; answer: WholeAnswer };

/** An answer without its figures. */
export type WholeAnswer = Pick<Answer, 'text' | 'toolCalls' | 'finishReason' | 'refusal' | 'unreadToolCalls'>;

export interface StreamReader {
  read(event: unknown): Read;
  /** Whether the vendor has told that its answer is complete. */
  readonly isComplete: boolean;
  /** Reads `[DONE]`, the end mark of the chat completions format. Returns what the package still needs. */
  done?(): object | undefined;
}

export interface AnswerReader {
  /** Reads an answer in one piece, and at most `maxToolCalls` tool calls of it. */
  whole(answer: unknown, maxToolCalls: number): ReadWhole;
  stream(): StreamReader;
  /** The member that has the input of a tool call as an object; left out: the reader takes none. */
  readonly inputMember?: string;
}

export const unknown: Read = { is: 'unknown' };

// A vendor that fails after its answer has begun has no status any more. The type of its error stands for one.
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
const defaultStatus = 500;

/** The error that an answer or an event tells of; undefined where it tells of none. */
export function errorIn(value: unknown): Read | undefined {
  const error = memberOf(value, 'error');
  const isError = memberOf(value, 'object') === 'error' || memberOf(value, 'type') === 'error';
  if (!isError && (error === undefined || error === null || error === '' || error === false)) return undefined;
  const told = isError && error === undefined ? value : error;
  for (const name of ['code', 'status', 'type']) {
    const status = statusOf(memberOf(told, name));
    if (status !== undefined) return { is: 'error', status };
  }
  return { is: 'error', status: defaultStatus };
}

function statusOf(told: unknown): number | undefined {
  if (typeof told === 'string' && Object.hasOwn(statuses, told)) return statuses[told];
  const status = typeof told === 'string' && /^\d{3}$/.test(told) ? Number(told) : told;
  return typeof status === 'number' && status >= 400 && status <= 599 ? status : undefined;
}

/** The text of a content that is a text or a list of parts. */
export function textIn(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (typeof part === 'string' ? part : stringOr(memberOf(part, 'text'), ''))).join('');
}

export function stringOr<Other>(value: unknown, other: Other): string | Other {
  return typeof value === 'string' ? value : other;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
