import { ApiError } from './api-error.ts';

/** Reads the JSON text of an answer that holds one item, or a list of them. */
export interface AnswerReader<Item> {
  readonly one: (text: string) => Item;
  readonly many: (text: string) => Item[];
}

/** Reads values of JavaScript, whose numbers have the digits of a double. */
export function plainAnswers<Item>(): AnswerReader<Item> {
  return { one: (text) => parseAnswer(text) as Item, many: (text) => parseAnswer(text) as Item[] };
}

/** Parses an answer. One that is not JSON is an ApiError, and never an empty success. */
export function parseAnswer<Value = unknown>(text: string, parse: (text: string) => Value = JSON.parse): Value {
  try {
    return parse(text);
  } catch (cause) {
    throw notJson(cause);
  }
}

export function notJson(cause: unknown): ApiError {
  return new ApiError('invalid_answer', 'The service answered with text that is not JSON.', { cause });
}
