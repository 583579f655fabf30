import { errorStatus, listOf } from './answer-reader.ts';
import { anthropic } from './anthropic.ts';
import { figure, maxFigure, memberOf } from './members.ts';
import type { PassedEnds, PassedFormat } from './passed-answer.ts';
import type { Answer, Usage } from './port.ts';

const defaultVersion = '2023-06-01';

/** The headers that the vendor requires. A version of the client's replaces this one. */
function requiredHeaders(apiKey: string): Record<string, string> {
  return { 'anthropic-version': defaultVersion, 'x-api-key': apiKey };
}

const events = new Set(['ping', 'message_start', 'message_delta', 'message_stop']);

/** The second provider's own format. */
export const messages: PassedFormat = {
  requiredHeaders,
  isAnswer: (answer) => memberOf(answer, 'type') === 'message' && Array.isArray(memberOf(answer, 'content')),
  // Gateways may leave out the type.
  statusOfError: (value) => (['error', undefined].includes(Object(value).type) ? errorStatus(value) : undefined),
  isEvent: (event) => events.has(typeOf(event)) || typeOf(event).startsWith('content_block_'),
  hasPart: (event) => typeOf(event) === 'content_block_delta',
  isUsageAlone: () => false,
  ends: () => new MessageEnd(),
  finishOf(value) {
    const reason = stopReasonOf(value);
    return typeof reason === 'string' ? (finishReasons[reason] ?? 'other') : undefined;
  },
  usageIn(value) {
    const started = memberOf(memberOf(value, 'message'), 'usage');
    if (started === undefined)
      return /^(?:ping|content_block_|message_stop)/.test(typeOf(value)) ? undefined : memberOf(value, 'usage');
    // The output at the start is no figure of the answer.
    const { output_tokens: _, ...input } = { output_tokens: undefined, ...Object(started) };
    return input;
  },
  usageOf(raw) {
    const iterations = listOf(memberOf(raw, 'iterations'));
    const atTop = anthropic.usageOf(raw);
    // The figures at the top leave out those of a compaction, and are never more than all iterations.
    return iterations.length === 0 ? atTop : joined(iterations.map(anthropic.usageOf).reduce(sumOf), atTop, Math.max);
  },
  faultOfRefusal: (status, body) => anthropic.faultOfRefusal?.(status, body),
};

/** What counts the tokens of a request. It uses none. */
export const countTokens: PassedFormat = {
  ...messages,
  isAnswer: (answer) => figure(answer, 'input_tokens') !== undefined,
  isEvent: () => false,
  hasPart: () => false,
  finishOf: () => undefined,
  usageIn: () => undefined,
};

const finishReasons: Readonly<Record<string, Answer['finishReason']>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool-calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'content-filter',
};

function sumOf(one: Usage, other: Usage): Usage {
  return joined(one, other, (a, b) => a + b);
}

/** An unknown input or output stays unknown, and so is a figure that no answer can have. */
function joined(one: Usage, other: Usage, join: (a: number, b: number) => number): Usage {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]) as Set<keyof Usage>;
  const joint = [...names].map((name) => {
    const isNeeded = name === 'inputTokens' || name === 'outputTokens';
    const [a, b] = [one[name], other[name]];
    const isUnknown = isNeeded ? a === undefined || b === undefined : a === undefined && b === undefined;
    const figures = join(a ?? 0, b ?? 0);
    return [name, isUnknown || figures > maxFigure ? undefined : figures];
  });
  return Object.fromEntries(joint);
}

function typeOf(event: unknown): string {
  return String(memberOf(event, 'type'));
}

/** Of a whole answer, or of the event with the last figures. */
function stopReasonOf(value: unknown): unknown {
  return memberOf(typeOf(value) === 'message_delta' ? memberOf(value, 'delta') : value, 'stop_reason');
}

/** A stream without its last event was cut, and must not look complete to the client. */
class MessageEnd implements PassedEnds {
  isComplete = false;
  /** They come with the reason. */
  hasLastUsage = false;

  read(event: unknown): void {
    if (typeOf(event) === 'message_delta' && typeof stopReasonOf(event) === 'string') this.hasLastUsage = true;
    if (typeOf(event) === 'message_stop') this.isComplete = true;
  }
}
