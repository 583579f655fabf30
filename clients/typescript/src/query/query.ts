/**
 * A query of the service: terms that must all hold. `String(query)` is its text; every list of the client takes it as
 * `q`. Only the functions beside this class make one, so a value can never become a part of the language.
 */
export class Query {
  readonly terms: readonly string[];

  constructor(terms: readonly string[]) {
    this.terms = terms;
  }

  toString(): string {
    return this.terms.join(' ');
  }
}

/**
 * All of these hold. Without any: everything matches.
 *
 * @example
 * and(entity('order'), actor('Jane Doe')); // entity:"order" actor:"Jane Doe"
 */
export function and(...queries: readonly Query[]): Query {
  return new Query(queries.flatMap(({ terms }) => terms));
}

/**
 * At least one of these holds. Throws TypeError without any, since nothing could match.
 *
 * An `occurredAt` inside of an `or` never replaces the service's window of 30 days. Put it beside the `or`, into an
 * `and`.
 *
 * @example
 * or(changeType('delete'), and(entity('order'), actor('external')));
 */
export function or(...queries: readonly Query[]): Query {
  const [first] = queries;
  if (first === undefined) throw new TypeError('or() needs at least one query.');
  if (queries.length === 1) return first;
  return new Query([`compoundLogicalQuery:(${queries.map((query) => `(${query})`).join(' OR ')})`]);
}
