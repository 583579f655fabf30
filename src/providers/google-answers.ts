import {
  type AnswerReader,
  errorIn,
  listOf,
  type Read,
  type StreamReader,
  stringOr,
  unknown,
} from './answer-reader.ts';
import { memberOf } from './members.ts';

/** Reads answers of `generateContent`, of which a stream sends several. Parts of unknown kinds are passed over. */
export const googleAnswers: AnswerReader = {
  whole: read,
  stream: () => new ContentStream(),
};

class ContentStream implements StreamReader {
  isComplete = false;

  read(event: unknown): Read {
    if (finishReasonOf(event) !== null || blockReasonOf(event) !== null) this.isComplete = true;
    return read(event);
  }
}

function read(answer: unknown): Read {
  const candidates = memberOf(answer, 'candidates');
  const error = errorIn(answer);
  if (error !== undefined) return error;
  const blockReason = blockReasonOf(answer);
  const isKnown = Array.isArray(candidates) || blockReason !== null || memberOf(answer, 'usageMetadata') !== undefined;
  if (!isKnown) return unknown;
  const parts = listOf(memberOf(memberOf(listOf(candidates)[0], 'content'), 'parts')).flatMap(partOf);
  const candidate = { content: { parts }, finishReason: finishReasonOf(answer) };
  const value = {
    candidates: listOf(candidates).length === 0 ? [] : [candidate],
    ...(blockReason === null ? {} : { promptFeedback: { blockReason } }),
  };
  return { is: 'answer', value };
}

function finishReasonOf(answer: unknown): string | null {
  return stringOr(memberOf(listOf(memberOf(answer, 'candidates'))[0], 'finishReason'), null);
}

function blockReasonOf(answer: unknown): string | null {
  return stringOr(memberOf(memberOf(answer, 'promptFeedback'), 'blockReason'), null);
}

/** A part that Annals uses, or none. The signature of a thought goes back to the vendor with the call that it belongs to. */
function partOf(part: unknown): object[] {
  const signature = memberOf(part, 'thoughtSignature');
  const signed = typeof signature === 'string' ? { thoughtSignature: signature } : {};
  const text = memberOf(part, 'text');
  if (typeof text === 'string') return [{ text, thought: memberOf(part, 'thought') === true, ...signed }];
  const call = memberOf(part, 'functionCall');
  const name = memberOf(call, 'name');
  if (typeof name !== 'string') return [];
  const id = stringOr(memberOf(call, 'id'), null);
  return [{ functionCall: { id, name, args: memberOf(call, 'args') ?? {} }, ...signed }];
}
