import { AnnalsError } from '../core/errors.ts';

/**
 * A wrong query: 400. `position` is a 1-based code point; `expected` follows the word "expected" in the detail. Clients match
 * some messages (contract 3), so the caller may give one. The detail always has the position and what was expected there
 * (contract 4).
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
