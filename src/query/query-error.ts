import { AnnalsError } from '../errors.ts';

/**
 * A query that cannot be answered as written: 400. `position` is 1-based in characters (code points);
 * `expected` completes the sentence "expected …". Clients match some messages (contract: errors), so a
 * message may be given; the detail always has the position and what was expected there (contract 4).
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
