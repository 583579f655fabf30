import { type AnnalsError, invalidField } from '../core/errors.ts';
import { isStorable } from '../core/storable-text.ts';

/** The fields that order a list, the most important first. The document's own id breaks ties (spec D, rule 7). */
export interface Sort {
  readonly fields: readonly SortField[];
  readonly idDescending: boolean;
  /** Equal sorts have the same text, however the client wrote them. */
  readonly text: string;
}

export interface SortField {
  readonly path: readonly string[];
  readonly descending: boolean;
}

const maxFields = 8;
export const idField = '_id';

/**
 * Parses `field:ASC,other:DESC` (contract 10). A key of a path escapes its own `.`, `,`, `:` and `\` with `\`. Throws
 * validation_violation for an unknown direction, for an empty or a repeated field, and for more than 8 fields.
 */
export function parseSort(text: string | undefined): Sort {
  const criteria = text === undefined ? [] : splitUnescaped(text, ',').map(parseCriterion);
  if (criteria.length > maxFields) throw invalidSort(`sort must have at most ${maxFields} fields`);
  const names = criteria.map(({ path }) => JSON.stringify(path));
  const repeated = names.find((name, index) => names.indexOf(name) < index);
  if (repeated !== undefined) throw invalidSort('sort must name each field once');
  // An id is unique, so the fields after it have no effect.
  const idAt = criteria.findIndex(({ path }) => path.length === 1 && path[0] === idField);
  const fields = idAt === -1 ? criteria : criteria.slice(0, idAt);
  const idDescending = criteria[idAt]?.descending ?? false;
  const ordered = [...fields, { path: [idField], descending: idDescending }];
  return {
    fields,
    idDescending,
    text: ordered
      .map(({ path, descending }) => `${path.map(escapeKey).join('.')}:${descending ? 'DESC' : 'ASC'}`)
      .join(),
  };
}

export function parsePath(text: string): string[] {
  return splitUnescaped(text, '.').map((key) => key.replaceAll(/\\([\\.,:])/g, '$1'));
}

/** Splits at a separator that no `\` escapes. */
export function splitUnescaped(text: string, separator: string): string[] {
  const parts: string[] = [];
  let start = 0;
  for (let index = 0; index < text.length; index += 1) {
    if (text[index] === '\\') index += 1;
    else if (text[index] === separator) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  return [...parts, text.slice(start)];
}

function parseCriterion(text: string): SortField {
  const [field = '', direction = 'ASC', ...more] = splitUnescaped(text, ':').map((part) => part.trim());
  if (field === '') throw invalidSort('sort must not have an empty field');
  if (!isStorable(field)) throw invalidSort('sort must be text without NUL');
  const known = direction.toUpperCase();
  if (more.length > 0 || (known !== 'ASC' && known !== 'DESC')) throw invalidSort('sort directions are ASC and DESC');
  return { path: parsePath(field), descending: known === 'DESC' };
}

function escapeKey(key: string): string {
  return key.replaceAll(/[\\.,:]/g, '\\$&');
}

function invalidSort(message: string): AnnalsError {
  return invalidField('sort', message);
}
