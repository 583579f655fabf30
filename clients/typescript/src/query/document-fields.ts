import { JsonNumber } from '../json/json-value.ts';
import { Glob, Regex, textTerm } from './pattern.ts';
import { Query } from './query.ts';
import { fieldName, quoted } from './written.ts';

/** What a field of a document may equal. Numbers equal numbers and strings equal strings. */
export type FieldValue = string | number | bigint | boolean | JsonNumber;
/** Numbers are compared with numbers by value, strings with strings by code point. */
export type FieldBound = Exclude<FieldValue, boolean>;

/**
 * A field of instances, agents, logs or jobs. Its name is the keys to it, joined by `.`. Where the keys meet an array,
 * a term holds if it holds for one element.
 *
 * @example
 * and(field('slots').atLeast(10), field('name.en').is(glob('Aisle *')));
 */
export function field(name: string): Field {
  return new Field(name);
}

/** A condition on a value: bounds, or whether it is there. Made by `value`. */
export class ValueCondition {
  /** As the query language writes it after the colon. */
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Conditions on a value other than equality.
 *
 * @example
 * changed({ path: 'price.amount', after: value.below(1200) });
 */
export const value = {
  /** Is there; it may be null. */
  exists: () => new ValueCondition('exists'),
  /** Is not there. */
  missing: () => new ValueCondition('missing'),
  above: (bound: FieldBound) => new ValueCondition(`>${literal(bound)}`),
  atLeast: (bound: FieldBound) => new ValueCondition(`>=${literal(bound)}`),
  below: (bound: FieldBound) => new ValueCondition(`<${literal(bound)}`),
  atMost: (bound: FieldBound) => new ValueCondition(`<=${literal(bound)}`),
  /** At least `from`, and below `below`; both hold for the same element of an array. */
  between: (from: FieldBound, below: FieldBound) => new ValueCondition(`(>=${literal(from)} AND <${literal(below)})`),
} as const;

export class Field {
  readonly #name: string;

  /** Throws TypeError for a name that the query language cannot write. */
  constructor(name: string) {
    if (!new RegExp(`^${fieldName}$`).test(name)) {
      throw new TypeError(
        `${JSON.stringify(name)} is not a field: letters, digits, _ and dots, no digit or dot first.`,
      );
    }
    if (name === 'compoundLogicalQuery') throw new TypeError('compoundLogicalQuery is a word of the query language.');
    this.#name = name;
  }

  /** Equals one of the values, or matches one of the patterns. */
  is(...values: readonly (FieldValue | Glob | Regex)[]): Query {
    const texts = values.filter((one) => typeof one === 'string' || one instanceof Glob || one instanceof Regex);
    if (texts.length === values.length) return this.#query(textTerm(this.#name, texts));
    const exact = values.map((one) => (one instanceof Glob || one instanceof Regex ? undefined : literal(one)));
    if (exact.every((text) => text !== undefined)) {
      return this.#query(exact.length === 1 ? `${this.#name}:${exact[0]}` : `${this.#name}:(${exact.join(', ')})`);
    }
    throw new TypeError('Patterns and values that are not strings need a term each, joined by or().');
  }

  /** Is null, or is not there. */
  isNull(): Query {
    return this.#query(`${this.#name}:null`);
  }

  /** Is there; it may be null. */
  exists(): Query {
    return this.#meets(value.exists());
  }

  /** Is not there. */
  missing(): Query {
    return this.#meets(value.missing());
  }

  above(bound: FieldBound): Query {
    return this.#meets(value.above(bound));
  }

  atLeast(bound: FieldBound): Query {
    return this.#meets(value.atLeast(bound));
  }

  below(bound: FieldBound): Query {
    return this.#meets(value.below(bound));
  }

  atMost(bound: FieldBound): Query {
    return this.#meets(value.atMost(bound));
  }

  /** At least `from`, and below `below`; both hold for the same element of an array. */
  between(from: FieldBound, below: FieldBound): Query {
    return this.#meets(value.between(from, below));
  }

  #meets({ text }: ValueCondition): Query {
    return this.#query(`${this.#name}:${text}`);
  }

  #query(term: string): Query {
    return new Query([term]);
  }
}

/** A bare `1` or `true` is a number or a boolean for the service; a string is always in quotes. */
export function literal(given: FieldValue): string {
  if (typeof given === 'string') return quoted(given);
  if (typeof given === 'number' && !Number.isFinite(given)) throw new TypeError(`${given} is not a number of JSON.`);
  return given instanceof JsonNumber ? given.text : String(given);
}
