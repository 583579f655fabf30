import { randomUUID } from 'node:crypto';
import { answerLimits } from './answer-limits.ts';
import {
  type AnswerReader,
  errorIn,
  listOf,
  type ReadResult,
  type StreamReader,
  stringOr,
  textIn,
  unknown,
  type WholeAnswer,
} from './answer-reader.ts';
import { withOriginals } from './json-placeholders.ts';
import { figure, memberOf } from './members.ts';
import type { ToolCall } from './port.ts';

/** Reads the chat completions format, as the vendor and many other servers write it. */
export const openaiAnswers: AnswerReader = {
  whole(answer, maxToolCalls) {
    const choices = memberOf(answer, 'choices');
    const error = listOf(choices).length === 0 ? errorIn(answer) : undefined;
    if (error !== undefined) return error;
    if (!Array.isArray(choices)) return unknown;
    if (choices.length === 0) return { is: 'answer' };
    const [choice] = choices;
    const message = memberOf(choice, 'message');
    const sent = listOf(memberOf(message, 'tool_calls'));
    const { content, refusal } = textsOf(message);
    const toolCalls = sent.slice(0, maxToolCalls).flatMap(wholeToolCall);
    const finishReason = finishReasonOf(choice, refusal !== '') ?? ended(toolCalls.length > 0);
    const unreadToolCalls = sent.length - maxToolCalls;
    const unread = unreadToolCalls > 0 ? { unreadToolCalls } : {};
    return { is: 'whole', answer: { text: content + refusal, toolCalls, finishReason, ...unread } };
  },

  stream: () => new ChatStream(),

  inputMember: 'arguments',
};

class ChatStream implements StreamReader {
  isComplete = false;
  /** The ids of the tool calls so far, by the call's index. */
  readonly #toolCalls: string[] = [];

  read(event: unknown): ReadResult {
    const choices = memberOf(event, 'choices');
    const error = errorIn(event);
    if (error !== undefined) return error;
    if (!Array.isArray(choices)) return typeof memberOf(event, 'usage') === 'object' ? { is: 'answer' } : unknown;
    const [choice] = choices;
    if (choice === undefined) return { is: 'answer' };
    // A server that does not stream sends its whole answer as one event.
    const delta = memberOf(choice, 'delta') ?? memberOf(choice, 'message');
    const finishReason = finishReasonOf(choice);
    if (finishReason !== undefined) this.isComplete = true;
    const toolCalls = listOf(memberOf(delta, 'tool_calls')).flatMap((call) => this.#toolCall(call));
    const { content, refusal } = textsOf(delta);
    return chunk({ content: content + refusal, tool_calls: toolCalls }, finishReason);
  }

  done(): object | undefined {
    if (this.isComplete) return undefined;
    this.isComplete = true;
    // The package reads a stream without a finish reason as truncated.
    const read = chunk({}, ended(this.#toolCalls.length > 0));
    return read.is === 'answer' ? read.value : undefined;
  }

  /** A piece without an index continues the latest call, unless it has another id. */
  #toolCall(call: unknown) {
    const place = figure(call, 'index');
    const id = stringOr(memberOf(call, 'id'), '');
    const name = memberOf(memberOf(call, 'function'), 'name');
    const match = id === '' ? -1 : this.#toolCalls.indexOf(id);
    const begins = typeof name === 'string' && name !== '' && match === -1;
    const next = this.#toolCalls.length;
    const index =
      place !== undefined && place < answerLimits.toolCalls ? place : match !== -1 ? match : begins ? next : next - 1;
    const isNew = this.#toolCalls[index] === undefined;
    // A call without a name cannot be run.
    if (isNew && !begins) return [];
    if (isNew) this.#toolCalls[index] = id === '' ? `call_${randomUUID()}` : id;
    const content = { name: stringOr(name, null), arguments: argumentsOf(call) };
    return [{ index, ...(isNew ? { id: this.#toolCalls[index] } : {}), type: 'function', function: content }];
  }
}

function chunk(delta: object, finishReason: WholeAnswer['finishReason'] | undefined): ReadResult {
  const reason = finishReason?.replace('-', '_') ?? null;
  return { is: 'answer', value: { choices: [{ index: 0, delta, finish_reason: reason }] } };
}

function textsOf(message: unknown): { content: string; refusal: string } {
  return { content: textIn(memberOf(message, 'content')), refusal: textIn(memberOf(message, 'refusal')) };
}

/** The finish reason of a choice; undefined where it has none. */
export function finishReasonOf(choice: unknown, refuses = false): WholeAnswer['finishReason'] | undefined {
  const reason = stringOr(memberOf(choice, 'finish_reason'), '');
  switch (reason) {
    case '':
      return undefined;
    case 'stop':
    case 'stop_sequence':
    case 'eos':
    case 'eos_token':
    case 'end_turn':
      return refuses ? 'content-filter' : 'stop';
    case 'length':
      return 'length';
    case 'content_filter':
      return 'content-filter';
    case 'function_call':
    case 'tool_calls':
      return 'tool-calls';
    default:
      return 'other';
  }
}

/** The finish reason of a complete answer that states none. */
function ended(hasToolCalls: boolean): WholeAnswer['finishReason'] {
  return hasToolCalls ? 'tool-calls' : 'stop';
}

/** A call without a name cannot be run. */
function wholeToolCall(call: unknown): ToolCall[] {
  const name = memberOf(memberOf(call, 'function'), 'name');
  if (typeof name !== 'string') return [];
  return [{ id: idOf(call), name, input: argumentsOf(call) ?? '{}' }];
}

/** The vendor's id of a tool call. Some servers send none. */
function idOf(call: unknown): string {
  const id = stringOr(memberOf(call, 'id'), '');
  return id === '' ? `call_${randomUUID()}` : id;
}

/** The arguments as JSON text. Some servers send them as an object. */
function argumentsOf(call: unknown): string | null {
  const input = memberOf(memberOf(call, 'function'), 'arguments');
  if (input === undefined || input === null) return null;
  return typeof input === 'string' ? input : withOriginals(JSON.stringify(input));
}
