import { Type } from 'typebox';
import { tenantPattern } from '../postgres/tenants/tenants.ts';

/** Whether the text is a valid name of a tenant, on every path (contract: authentication). */
export function isTenantName(text: string): boolean {
  return tenantPattern.test(text);
}

/** The `{tenant}` of every path, for the route's `params` schema. */
export const TenantName = Type.String({
  $id: 'Tenant',
  pattern: '^[a-z][a-z0-9]+$',
  maxLength: 63,
  description: 'The tenant: lower case, a letter first.',
  examples: ['demo'],
});

// Clients that resolve paths remove `.` and `..` segments.
const idPattern = '^(?!\\.{1,2}$)[A-Za-z0-9._~-]{1,100}$';
const mustBeId = 'have 1 to 100 characters: letters, digits, ., _, ~ and -, and be neither . nor ..';

/** What is wrong with an id that a client chose; undefined if it is valid. */
export function faultOfChosenId(id: string): string | undefined {
  return new RegExp(idPattern).test(id) ? undefined : `must ${mustBeId}`;
}

/** Such an id in a body. */
export const chosenId = Type.Optional(
  Type.String({ pattern: idPattern, 'x-must': mustBeId, description: 'Default: a random id, or that of the path.' }),
);

/** Such an id in a path. Only writes check the pattern; reads do not find such a document. */
export function chosenIdInPath($id: string, example: string) {
  return Type.String({ $id, description: `It must ${mustBeId}.`, examples: [example] });
}

/** For a character class: direction controls (Unicode, Bidi_Control), which can make a name look like another. */
const bidirectionalControls = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';

/** A text of any length that people read as a name. */
export const shownText = {
  pattern: `^[^${bidirectionalControls}]*$`,
  'x-must': 'have no characters that turn the direction of a text',
} as const;

export const maxNameCharacters = 200;

/** The rules for names that people give. */
export const nameRules = {
  pattern: `^[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff${bidirectionalControls}]{1,${maxNameCharacters}}$`,
  'x-must': `have 1 to ${maxNameCharacters} characters and no control characters, nor any that turn the direction of a text`,
} as const;

/** The name that people give such a document. */
export const chosenName = Type.String(nameRules);
