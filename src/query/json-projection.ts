import { AnnalsError } from '../core/errors.ts';
import { isJsonNumber, keepsNumberLimits, numberLimits } from '../core/json/number.ts';

/**
 * The text that jsonb is made of. It is the same document, except that jsonb knows no U+0000: U+0001 U+0001 stands
 * for it, and U+0001 U+0002 for U+0001, which keeps the order by code point. Throws validation_violation for half
 * of a surrogate pair, which is no text, and for numbers beyond the limits.
 */
export function projectedJson(json: string): string {
  if (!suspicious.test(json)) return json;
  return json.replaceAll(scalar, (token) => {
    if (!token.startsWith('"')) {
      if (!isJsonNumber(token) || keepsNumberLimits(token)) return token;
      throw new AnnalsError(
        'validation_violation',
        `A number has at most ${numberLimits.digits} digits and a power of ten within ±${numberLimits.exponent}.`,
      );
    }
    if (!rareEscape.test(token)) return token;
    const text: string = JSON.parse(token);
    if (!text.isWellFormed()) throw new AnnalsError('validation_violation', 'Half of a surrogate pair is no text.');
    return JSON.stringify(projectedText(text));
  });
}

export function projectedText(text: string): string {
  return text.replaceAll(zeroOrOne, (character) => (character === '\0' ? '\u0001\u0001' : '\u0001\u0002'));
}

/** Reverses `projectedText`, and the stand-ins for halves of surrogate pairs that the paths of entries may have. */
export function textOfProjection(projected: string): string {
  return projected.replaceAll(pair, (standing) => {
    if (standing.startsWith('\u0001')) return standing === '\u0001\u0001' ? '\0' : '\u0001';
    return String.fromCharCode(standing.charCodeAt(1) - 0x1000);
  });
}

// Control characters are what this is about.
// biome-ignore-start lint/suspicious/noControlCharactersInRegex: see above
const zeroOrOne = /[\u0000\u0001]/g;
const pair = /\u0001[\u0001\u0002]|\ud7ff[\ue800-\uefff]/g;
// biome-ignore-end lint/suspicious/noControlCharactersInRegex: see above

const rareEscape = /\\u(?:000[01]|[dD][89a-fA-F])/;
/** Matches the few documents that have such values. Only these are read token by token. */
const suspicious = /\\u(?:000[01]|[dD][89a-fA-F])|[0-9.]{400}|[0-9][eE][+-]?[0-9]{3}/;
const scalar = /"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*/g;
