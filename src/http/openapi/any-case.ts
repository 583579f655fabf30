import { type TUnsafe, Type } from 'typebox';

/**
 * One of these words, in any case. The OpenAPI document names the words as they are written here, so that generated clients have
 * them as a type.
 *
 * @example
 * anyCase(['USER', 'SYSTEM'], { examples: ['USER'] });
 */
export function anyCase<Word extends string>(words: readonly Word[], options: object = {}): TUnsafe<string> {
  const pattern = words.map((word) => word.replaceAll(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`));
  return Type.Unsafe<string>({
    ...options,
    type: 'string',
    pattern: `^(${pattern.join('|')})$`,
    'x-enum': words,
    'x-must': `be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`,
  });
}
