import { AnnalsError } from '../../core/errors.ts';

/** A JSON object of a request, with its path in the body: `messages.0`, or an empty one for the body itself. */
export class Members {
  readonly place: string;
  readonly #value: Record<string, unknown>;

  constructor(value: unknown, place: string) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw refused(place, 'must be an object');
    this.#value = { ...value };
    this.place = place;
  }

  /** The value of a member; undefined if null or left out. */
  get(name: string): unknown {
    return Object.hasOwn(this.#value, name) ? (this.#value[name] ?? undefined) : undefined;
  }

  at(name: string | number): string {
    return this.place === '' ? String(name) : `${this.place}.${name}`;
  }

  /** Refuses unknown members by name, unless null or accepted by `ignored`: those at their default. */
  refuseOthers(taken: readonly string[], ignored: Readonly<Record<string, (value: unknown) => boolean>> = {}): void {
    for (const [name, value] of Object.entries(this.#value)) {
      if (value === null || taken.includes(name)) continue;
      const isIgnored = Object.hasOwn(ignored, name) ? ignored[name] : undefined;
      if (isIgnored?.(value) !== true) throw refused(this.at(name), 'is not supported');
    }
  }

  text(name: string): string | undefined {
    const value = this.#read(name, 'must be a string', (text) => typeof text === 'string') as string | undefined;
    if (value?.isWellFormed() === false) throw refused(this.at(name), 'must not have half of a surrogate pair');
    return value;
  }

  neededText(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw refused(this.at(name), 'is required');
    return value;
  }

  /** A short text for records. Databases store no NUL. */
  name(name: string, max: number): string | undefined {
    const value = this.text(name);
    if (value !== undefined && (value.length > max || value.includes('\0'))) {
      throw refused(this.at(name), `must have at most ${max} characters, without NUL`);
    }
    return value;
  }

  flag(name: string): boolean | undefined {
    return this.#read(name, 'must be true or false', (value) => typeof value === 'boolean') as boolean | undefined;
  }

  number(name: string, min: number, max: number): number | undefined {
    const isNumber = (value: unknown) => typeof value === 'number' && value >= min && value <= max;
    return this.#read(name, `must be a number from ${min} to ${max}`, isNumber) as number | undefined;
  }

  whole(name: string, max: number): number | undefined {
    const isWhole = (value: unknown) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= max;
    return this.#read(name, `must be a whole number from 1 to ${max}`, isWhole) as number | undefined;
  }

  one<Value extends string>(name: string, values: readonly Value[]): Value | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    const match = values.find((candidate) => candidate === value);
    if (match === undefined) throw refused(this.at(name), `must be one of: ${values.join(', ')}`);
    return match;
  }

  list(name: string, max: number): readonly unknown[] | undefined {
    const isList = (value: unknown) => Array.isArray(value) && value.length <= max;
    return this.#read(name, `must be a list of at most ${max}`, isList) as readonly unknown[] | undefined;
  }

  object(name: string): Members | undefined {
    const value = this.get(name);
    return value === undefined ? undefined : new Members(value, this.at(name));
  }

  /** The object itself, for JSON Schemas. */
  plain(): Record<string, unknown> {
    return this.#value;
  }

  #read(name: string, must: string, isValid: (value: unknown) => boolean): unknown {
    const value = this.get(name);
    if (value !== undefined && !isValid(value)) throw refused(this.at(name), must);
    return value;
  }
}

/** A fault of the request. Its field becomes the `param` of the error. */
export function refused(field: string, message: string): AnnalsError {
  return new AnnalsError('validation_violation', 'The request is not valid.', { details: [{ field, message }] });
}
