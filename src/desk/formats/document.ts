import { createHash } from 'node:crypto';
import { memberOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import type { JsonSplice } from '../../core/json/splice.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { decodedString } from '../../core/json/text.ts';
import { refused } from './members.ts';

/**
 * The text of a request as a document. `value` is what it says. Throws validation_violation where readers could differ in
 * what that is: for a member twice in an object, and for half of a surrogate pair.
 */
export function readDocument(text: string, value: unknown): JsonNode {
  const document = parseJson(text);
  const { repeatedKey } = document.tape;
  if (repeatedKey !== -1) throw refused(shown(decodedString(document.tape, repeatedKey)), 'is given twice');
  if (/\\u[dD][89a-fA-F]/.test(text)) refuseHalfPairs(value);
  return document;
}

/** What the names of a format's members may be. */
export interface NameRules {
  /** Members anywhere that name what is kept at the vendor. */
  readonly refused: ReadonlySet<string>;
  /** Members that are set or checked: written in another case some servers read them too. */
  readonly judged: ReadonlySet<string>;
  /** Members with an object whose names are the client's own. */
  readonly opaque: ReadonlySet<string>;
}

/** Refuses names of members that hold what is kept at the vendor, or that differ from a checked one by case alone. */
export function checkNames(value: unknown, rules: NameRules, holder?: Place): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const [index, member] of value.entries()) {
      if (typeof member === 'object') checkNames(member, rules, { holder, name: index });
    }
    return;
  }
  for (const name of Object.keys(value)) {
    const member: unknown = Reflect.get(value, name);
    const plain = /^[a-z0-9_]*$/.test(name) ? name : folded(name);
    if (plain !== name && rules.judged.has(plain)) {
      throw refused(textOfPlace({ holder, name }), `must be written as ${plain}`);
    }
    if (rules.refused.has(name) && member !== null) {
      throw refused(
        textOfPlace({ holder, name }),
        'names what is kept elsewhere: nothing is fetched or kept at the provider',
      );
    }
    if (typeof member === 'object' && !rules.opaque.has(name)) checkNames(member, rules, { holder, name });
  }
}

/** Removes members of the body, if they are there. */
export function removeMembers(document: JsonNode, splice: JsonSplice, names: readonly string[]): void {
  for (const name of names) if (memberOf(document, name) !== undefined) splice.removeMember(document, name);
}

/** A name without case. Some servers fold letters beyond ASCII too, such as the sign of Kelvin. */
export function folded(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/** A name of the client's for a message. */
export function shown(name: string): string {
  return name.slice(0, 100).toWellFormed();
}

/** A text that only this tenant has as such, where tenants share a key. */
export function hashWith(tenant: string, text: string): string {
  return createHash('sha256').update(`${tenant}\0${text}`).digest('hex');
}

/** The place of a value. Its text is only made for an error. */
interface Place {
  readonly holder: Place | undefined;
  readonly name: string | number;
}

function textOfPlace({ holder, name }: Place): string {
  const last = typeof name === 'string' ? shown(name) : String(name);
  return holder === undefined ? last : `${textOfPlace(holder)}.${last}`;
}

function refuseHalfPairs(value: unknown, place?: Place): void {
  if (typeof value === 'string') checkPairs(value, place);
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const [index, member] of value.entries()) refuseHalfPairs(member, { holder: place, name: index });
    return;
  }
  for (const name of Object.keys(value)) {
    const at = { holder: place, name };
    checkPairs(name, at);
    refuseHalfPairs(Reflect.get(value, name), at);
  }
}

function checkPairs(text: string, place: Place | undefined): void {
  if (text.isWellFormed()) return;
  throw refused(place === undefined ? '' : textOfPlace(place), 'must not have half of a surrogate pair');
}
