import { quoted } from './quoted.ts';

/** Texts that mean themselves without quotes: words with single blanks between them. */
const plain = /^[\p{L}\p{N}_@.#/+'&-]+(?: [\p{L}\p{N}_@.#/+'&-]+)*$/u;
const operatorWord = /(?:^| )(?:AND|OR|NOT)(?: |$)/;

/**
 * A text as a value of the query language, without quotes where it needs none.
 *
 * @example
 * writtenValue('Jane Doe'); // Jane Doe
 * writtenValue('type: x'); // "type: x"
 */
export function writtenValue(text: string): string {
  return plain.test(text) && !operatorWord.test(text) ? text : quoted(text);
}
