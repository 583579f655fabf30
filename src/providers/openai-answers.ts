import { randomUUID } from 'node:crypto';
import { answerLimits } from './answer-limits.ts';
import {
  type AnswerReader,
  errorIn,
  listOf,
  type Read,
  type StreamReader,
  stringOr,
  textIn,
  unknown,
} from './answer-reader.ts';
import { figure, memberOf } from './members.ts';

/** Reads the chat completions format, as the vendor and many other servers write it. */
export const openaiAnswers: AnswerReader = {
  whole(answer, maxToolCalls) {
    const choices = memberOf(answer, 'choices');
    const error = listOf(choices).length === 0 ? errorIn(answer) : undefined;
    if (error !== undefined) return error;
    if (!Array.isArray(choices)) return unknown;
    const [choice] = choices;
    const message = memberOf(choice, 'message');
    const toolCalls = listOf(memberOf(message, 'tool_calls'));
    const value = {
      choices: choices.slice(0, 1).map(() => ({
        index: 0,
        message: { ...textsOf(message), tool_calls: toolCalls.slice(0, maxToolCalls).flatMap(wholeToolCall) },
        finish_reason: stringOr(memberOf(choice, 'finish_reason'), null),
      })),
    };
    const unreadToolCalls = Math.max(0, toolCalls.length - maxToolCalls);
    return { is: 'answer', value, ...(unreadToolCalls === 0 ? {} : { unreadToolCalls }) };
  },

  stream: () => new ChatStream(),
};

class ChatStream implements StreamReader {
  isComplete = false;
  /** The ids of the tool calls so far; the place of an id is the call's index. */
  readonly #toolCalls: string[] = [];

  read(event: unknown): Read {
    const choices = memberOf(event, 'choices');
    const error = errorIn(event);
    if (error !== undefined) return error;
    if (!Array.isArray(choices)) return typeof memberOf(event, 'usage') === 'object' ? { is: 'answer' } : unknown;
    const [choice] = choices;
    if (choice === undefined) return { is: 'answer' };
    // A server that does not stream sends its whole answer as one event.
    const delta = memberOf(choice, 'delta') ?? memberOf(choice, 'message');
    const finishReason = stringOr(memberOf(choice, 'finish_reason'), null);
    if (finishReason !== null) this.isComplete = true;
    const toolCalls = listOf(memberOf(delta, 'tool_calls')).flatMap((call) => this.#toolCall(call));
    return chunk({ ...textsOf(delta), tool_calls: toolCalls }, finishReason);
  }

  done(): object | undefined {
    if (this.isComplete) return undefined;
    this.isComplete = true;
    // The package takes a stream without a finish reason for one that was cut.
    const read = chunk({}, 'unknown');
    return read.is === 'answer' ? read.value : undefined;
  }

  /** A piece without an index continues the latest call, unless it names another one. */
  #toolCall(call: unknown) {
    const told = figure(call, 'index');
    const id = stringOr(memberOf(call, 'id'), '');
    const name = memberOf(memberOf(call, 'function'), 'name');
    const known = id === '' ? -1 : this.#toolCalls.indexOf(id);
    const begins = typeof name === 'string' && name !== '' && known === -1;
    const next = this.#toolCalls.length;
    const index =
      told !== undefined && told < answerLimits.toolCalls ? told : known !== -1 ? known : begins ? next : next - 1;
    const isNew = this.#toolCalls[index] === undefined;
    // A call without a name cannot be run.
    if (isNew && !begins) return [];
    if (isNew) this.#toolCalls[index] = id === '' ? `call_${randomUUID()}` : id;
    const said = { name: stringOr(name, null), arguments: argumentsOf(call) };
    return [{ index, ...(isNew ? { id: this.#toolCalls[index] } : {}), type: 'function', function: said }];
  }
}

function chunk(delta: object, finishReason: string | null): Read {
  return { is: 'answer', value: { choices: [{ index: 0, delta, finish_reason: finishReason }] } };
}

function textsOf(message: unknown): { content: string; refusal: string } {
  return { content: textIn(memberOf(message, 'content')), refusal: textIn(memberOf(message, 'refusal')) };
}

/** A call without a name cannot be run. */
function wholeToolCall(call: unknown) {
  const name = memberOf(memberOf(call, 'function'), 'name');
  if (typeof name !== 'string') return [];
  const id = stringOr(memberOf(call, 'id'), null);
  return [{ id, type: 'function', function: { name, arguments: argumentsOf(call) ?? '{}' } }];
}

/** The arguments as JSON text. Some servers send them as an object. */
function argumentsOf(call: unknown): string | null {
  const given = memberOf(memberOf(call, 'function'), 'arguments');
  if (given === undefined || given === null) return null;
  return typeof given === 'string' ? given : JSON.stringify(given);
}
