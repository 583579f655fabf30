import { Type } from 'typebox';
import { tenantPattern } from '../postgres/tenants/tenants.ts';

/** Whether the text can name a tenant; the pattern holds on every path (contract: authentication). */
export function isTenantName(text: string): boolean {
  return tenantPattern.test(text);
}

/** The `{tenant}` of every path, for the route's `params` schema; the same rule in the words of the specification. */
export const TenantName = Type.String({
  $id: 'Tenant',
  pattern: '^[a-z][a-z0-9]+$',
  maxLength: 63,
  description: 'The tenant: lower case, a letter first.',
  examples: ['demo'],
});

// A client that resolves a path would make nothing, or its parent, of a segment that is a dot or two.
const idPattern = '^(?!\\.{1,2}$)[A-Za-z0-9._~-]{1,100}$';
const mustBeId = 'have 1 to 100 characters: letters, digits, ., _, ~ and -, and be neither . nor ..';

/** What is wrong with an id that a client chose, or undefined. */
export function faultOfChosenId(id: string): string | undefined {
  return new RegExp(idPattern).test(id) ? undefined : `must ${mustBeId}`;
}

/** Such an id in a body. */
export const chosenId = Type.Optional(
  Type.String({ pattern: idPattern, 'x-must': mustBeId, description: 'Default: a random id, or that of the path.' }),
);

/** Such an id in a path. Its pattern is checked where documents are written: to others it is not there. */
export function chosenIdInPath($id: string, example: string) {
  return Type.String({ $id, description: `It must ${mustBeId}.`, examples: [example] });
}

/** Marks and controls that turn the direction of a text (Unicode, Bidi_Control), for a class of a pattern: a name with them shows as another. */
export const bidirectionalControls = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';

/** A text that people read as a name, of any length. */
export const shownText = {
  pattern: `^[^${bidirectionalControls}]*$`,
  'x-must': 'have no characters that turn the direction of a text',
} as const;

export const maxNameCharacters = 200;

/** What holds for names that people give. */
export const nameRules = {
  pattern: `^[^\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff${bidirectionalControls}]{1,${maxNameCharacters}}$`,
  'x-must': `have 1 to ${maxNameCharacters} characters and no control characters, nor any that turn the direction of a text`,
} as const;

/** The name that people give such a document. */
export const chosenName = Type.String(nameRules);
