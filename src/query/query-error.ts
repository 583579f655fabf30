import { AnnalsError } from '../core/errors.ts';

/** Maximum number of characters of a query that an error shows. */
const maxShown = 40;

/**
 * What stands at `offset` of a query, for the end of an error's message: the whole word, the whole text in double
 * quotes, or what stands before `end`.
 *
 * @example
 * foundAt('is:lowr', 3); // found "lowr"
 * foundAt('actor: Jane', 6); // found a blank before "Jane"
 */
export function foundAt(text: string, offset: number, end?: number): string {
  if (end !== undefined && end >= offset) return `found ${shown(text.slice(offset, end))}`;
  const next = offset + text.slice(offset).search(/[^ ]|$/);
  if (next === offset) return `found ${wordAt(text, offset)}`;
  const blanks = next - offset === 1 ? 'a blank' : 'blanks';
  return `found ${blanks} ${next < text.length ? 'before' : 'at'} ${wordAt(text, next)}`;
}

const quoted = /"(?:\\.|[^"\\])*"/sy;
const unclosed = /".*/sy;
const word = /[^ "(),]+/y;

function wordAt(text: string, offset: number): string {
  if (offset >= text.length) return 'the end of the query';
  for (const pattern of [quoted, unclosed, word]) {
    pattern.lastIndex = offset;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) return shown(found);
  }
  return shown(text.charAt(offset));
}

/** In double quotes, which a text that has them already does not get again. */
function shown(raw: string): string {
  const own = raw.startsWith('"');
  const closed = own && raw.length > 1 && raw.endsWith('"');
  const characters = [...(own ? raw.slice(1, closed ? -1 : undefined) : raw)];
  const cut = characters.length > maxShown;
  const visible = characters.slice(0, maxShown).map(visibly).join('');
  return `"${visible}${cut ? '…' : ''}${own && !closed && !cut ? '' : '"'}`;
}

/** A reader does not see a tab or a space without width, which may be the whole mistake. */
function visibly(character: string): string {
  if (character === ' ' || !/[\p{C}\p{Z}]/u.test(character)) return character;
  return `<U+${character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}>`;
}

/**
 * A wrong query: 400. `position` is a 1-based code point; `expected` follows the word "expected" in the detail. Clients
 * match some messages (contract 3), so the caller may give one. The detail always has the position and what was
 * expected there (contract 4).
 */
export class QueryError extends AnnalsError {
  readonly position: number;
  readonly expected: string;

  constructor(
    position: number,
    expected: string,
    message = `The query is not valid at position ${position}: expected ${expected}`,
  ) {
    super('validation_violation', message, {
      details: [{ field: 'q', message: `At position ${position}: expected ${expected}` }],
    });
    this.name = 'QueryError';
    this.position = position;
    this.expected = expected;
  }
}
