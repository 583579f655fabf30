import { isUtf8 } from 'node:buffer';
import { entriesOf, memberNodes, memberOf, objectText } from '../../core/json/members.ts';
import { maximumImportDepth, parseJson, parseOnTape } from '../../core/json/parse.ts';
import {
  braceByte,
  bracketByte,
  firstByte,
  firstChild,
  type JsonNode,
  JsonSyntaxError,
  type JsonTape,
  nextChild,
  quoteByte,
} from '../../core/json/tape.ts';
import { compactText, decodedString } from '../../core/json/text.ts';
import { mask } from '../../core/sealing.ts';
import { type Change, type ChangeType, contentOf, differenceOfChange, type RelatedItem } from '../change.ts';
import { identityOfId, identityOfLine, identityOfRepeatedLine } from '../identity.ts';
import { importTime } from '../import-time.ts';
import { markMaskedDifferences, maxMaskedPath, maxMaskedPaths } from '../masked-differences.ts';
import { faultOfContext, faultOfName } from '../member-faults.ts';
import type { Occurrences } from '../occurrences.ts';
import { PathsTooLargeError } from '../path-list.ts';
import { applyRules, compileMasks, compileRules } from './apply-rules.ts';
import type { ValueRules } from './mapping.ts';
import type { MappedChange } from './row-change.ts';

/** A client of the recorder, with its current rights. */
export interface RecordingClient {
  /** The actor of its changes without one. */
  readonly name: string;
  /** The tenant of its changes. */
  readonly tenant: string;
  /** Whether it has the scope `recorder.actor_set`. */
  readonly maySetActor: boolean;
}

export const otherTenant = 'is mapped to another tenant than that of the path';
const noActorScope = '"actor" needs the scope recorder.actor_set';

/** Applies a client's rights to its line, also on a retry. `identity`: identifies a line without an `id`. */
export function changeOfClient(read: ImportedLine, client: RecordingClient, identity?: Uint8Array): ImportedLine {
  if (read.kind !== 'change') return read;
  const { change, hasId, hasActor } = read;
  if (identity === undefined && !hasId) return { kind: 'rejected', reason: '"id" is missing' };
  if (hasActor && !client.maySetActor) return { kind: 'rejected', reason: noActorScope };
  if (identity !== undefined) change.identity = identity;
  if (!hasActor) change.actor = client.name;
  return read;
}

/** Why a client may not record a row as mapped, or undefined. */
export function refusalOfRow(mapped: MappedChange, client: RecordingClient): string | undefined {
  if (mapped.tenant !== undefined && mapped.tenant !== client.tenant) return otherTenant;
  return mapped.kind === 'change' && mapped.hasActor && !client.maySetActor ? noActorScope : undefined;
}

export const operations: Record<ChangeType, string> = { create: 'insert', update: 'update', delete: 'delete' };

/**
 * A change as an import line, to store a rejected change or to send it on with `id` as its identity. `sides`: JSON text
 * of an object with the masked members `before` and `after`.
 */
export function lineOfChange(change: Change, sides: string, id?: string): string {
  const parsed = parseJson(sides);
  const { type, entity, entityId, name, actor, schemaVersion, related, context } = change;
  const members: [string, string | JsonNode | undefined][] = [
    ['id', id && JSON.stringify(id)],
    ['op', JSON.stringify(operations[type])],
    ['entity', JSON.stringify(entity)],
    ['entityId', JSON.stringify(entityId)],
    ['at', JSON.stringify(new Date(change.at).toISOString())],
    ['name', name === undefined ? undefined : JSON.stringify(name)],
    ['actor', JSON.stringify(actor)],
    ['schemaVersion', schemaVersion === undefined ? undefined : JSON.stringify(schemaVersion)],
    ['related', related.length === 0 ? undefined : JSON.stringify(related)],
    ['context', context],
    // With an incomplete `before`, its missing columns would appear as new.
    ['before', type === 'create' || isWhole(change) ? undefined : memberOf(parsed, 'before')],
    ['after', type === 'delete' ? undefined : memberOf(parsed, 'after')],
    ['masked', maskedOf(change)],
  ];
  return objectText(members.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const])));
}

/** JSON text of the paths of masked values that differ although their texts are equal. */
function maskedOf({ type, paths }: Change): string | undefined {
  if (type !== 'update' || !paths.includes(mask)) return undefined;
  const masked: string[] = [];
  for (const [path, sides] of entriesOf(parseJson(paths))) {
    const [before, after] = [memberOf(sides, 'before'), memberOf(sides, 'after')];
    if (before !== undefined && after !== undefined && compactText(before) === compactText(after)) masked.push(path);
  }
  if (masked.length === 0) return undefined;
  const isTooLong =
    masked.some(({ length }) => length > maxMaskedPath) ||
    masked.reduce((sum, { length }) => sum + length, 0) > maxMaskedPaths;
  return JSON.stringify(isTooLong ? [''] : masked);
}

function isWhole({ type, marks }: Change): boolean {
  return type === 'update' && marks !== undefined && JSON.parse(marks).whole === true;
}

/** The result of an import line. A reason names members and positions, never content. */
export type ImportedLine =
  | {
      kind: 'change';
      change: Change;
      /** Whether the line has an identity and an actor. */
      hasId: boolean;
      hasActor: boolean;
    }
  | { kind: 'unchanged' }
  | { kind: 'rejected'; reason: string };

/** The change type of each `op`. */
export const typeOfOp: ReadonlyMap<string, ChangeType> = new Map([
  ['insert', 'create'],
  ['create', 'create'],
  ['update', 'update'],
  ['replace', 'update'],
  ['delete', 'delete'],
]);

/** The members of a change (contract 6), `masked` included. */
const memberNames = 'op entity entityId at id name actor schemaVersion related context before after masked';
export const changeMembers: ReadonlySet<string> = new Set(memberNames.split(' '));

const relatedMembers: ReadonlySet<string> = new Set(['entity', 'entityId']);

/** Reasons truncate longer member names. */
const maxShownName = 200;

/** Why a line is rejected. */
class Rejection extends Error {}

/**
 * Reads an import line (contract 6), without its line ending, using `tape` as scratch space. The nesting limit applies
 * to `before` and `after`. Null means absent, except for `before` and `after`. An unknown member rejects the line
 * (contract 3). `rules`: masks and ignores by entity (recording.md 3). The member `masked` lists masked values that
 * differ (docs/decisions/outbox.md).
 */
export function readImportLine(
  line: Buffer,
  tape: JsonTape,
  occurrences: Occurrences,
  rules: ReadonlyMap<string, ValueRules> = noRules,
): ImportedLine {
  try {
    return changeOfLine(line, tape, occurrences, rules);
  } catch (error) {
    if (error instanceof Rejection || error instanceof PathsTooLargeError) {
      return { kind: 'rejected', reason: error.message };
    }
    if (error instanceof JsonSyntaxError)
      return { kind: 'rejected', reason: `cannot be read as JSON: ${error.message}` };
    throw error;
  }
}

const noRules: ReadonlyMap<string, ValueRules> = new Map();

function changeOfLine(
  line: Buffer,
  tape: JsonTape,
  occurrences: Occurrences,
  rules: ReadonlyMap<string, ValueRules>,
): ImportedLine {
  if (!isUtf8(line)) throw new Rejection('is no UTF-8');
  parseOnTape(tape, line, 0, line.length, maximumImportDepth + 1);
  if (firstByte(tape, 0) !== braceByte) throw new Rejection('is no JSON object');
  const members = memberNodes(tape, 0);

  const type = typeOfOp.get(requiredText(tape, members, 'op'));
  if (type === undefined) throw new Rejection('"op" is not insert, create, update, replace or delete');
  const entity = requiredName(tape, members, 'entity');
  const entityId = requiredName(tape, members, 'entityId');
  const at = importTime(requiredText(tape, members, 'at'));
  if (typeof at === 'string') throw new Rejection(`"at" ${at}`);
  const id = optionalName(tape, members, 'id');
  const name = optionalName(tape, members, 'name');
  const namedActor = optionalName(tape, members, 'actor');
  const actor = namedActor ?? 'unknown';
  const schemaVersion = optionalName(tape, members, 'schemaVersion');
  const related = relatedItems(tape, members.get('related'));
  const ofEntity = rules.get(entity);
  const context = contextOf(tape, members.get('context'), ofEntity);
  const sides = { before: documentOf(tape, members, 'before'), after: documentOf(tape, members, 'after') };
  const { before, after } = ofEntity === undefined ? sides : applyRules(compileRules(ofEntity), sides);
  const masked = maskedPaths(tape, members.get('masked'));
  refuseUnknown(members, changeMembers);
  if (masked.length > 0 && before !== undefined && after !== undefined) markMaskedDifferences(after, masked);

  const difference = differenceOfChange(type, before, after);
  if (difference === undefined) return { kind: 'unchanged' };
  const identity = id === undefined ? identityAmongEqualLines(line, occurrences) : identityOfId(id);
  const change: Change = { identity, at, type, entity, entityId, actor, related, ...contentOf(difference) };
  if (name !== undefined) change.name = name;
  if (schemaVersion !== undefined) change.schemaVersion = schemaVersion;
  if (context !== undefined) change.context = context;
  return { kind: 'change', change, hasId: id !== undefined, hasActor: namedActor !== undefined };
}

function identityAmongEqualLines(line: Buffer, occurrences: Occurrences): Buffer {
  const first = identityOfLine(line);
  return identityOfRepeatedLine(first, occurrences.next(first));
}

function relatedItems(tape: JsonTape, list: number | undefined): RelatedItem[] {
  if (list === undefined || isNull(tape, list)) return [];
  if (firstByte(tape, list) !== bracketByte) throw new Rejection('"related" is no array');
  const items: RelatedItem[] = [];
  for (let item = firstChild(tape, list); item !== -1; item = nextChild(tape, item)) {
    const field = `related.${items.length}`;
    if (firstByte(tape, item) !== braceByte) throw new Rejection(`"${field}" is no object`);
    const members = memberNodes(tape, item);
    items.push({
      entity: requiredName(tape, members, 'entity', `${field}.`),
      entityId: requiredName(tape, members, 'entityId', `${field}.`),
    });
    refuseUnknown(members, relatedMembers, `${field}.`);
  }
  return items;
}

/** The paths of masked values that differ, according to the sender. */
function maskedPaths(tape: JsonTape, list: number | undefined): string[] {
  if (list === undefined || isNull(tape, list)) return [];
  if (firstByte(tape, list) !== bracketByte) throw new Rejection('"masked" is no array');
  const paths: string[] = [];
  let length = 0;
  for (let item = firstChild(tape, list); item !== -1; item = nextChild(tape, item)) {
    if (firstByte(tape, item) !== quoteByte) throw new Rejection(`"masked.${paths.length}" is no string`);
    const path = decodedString(tape, item);
    length += path.length;
    if (path.length > maxMaskedPath || length > maxMaskedPaths) throw new Rejection('"masked" is too long');
    paths.push(path);
  }
  return paths;
}

function contextOf(tape: JsonTape, node: number | undefined, rules: ValueRules | undefined): string | undefined {
  if (node === undefined || isNull(tape, node)) return undefined;
  const fault = faultOfContext({ tape, node });
  if (fault !== undefined) throw new Rejection(`"context" ${fault}`);
  const { after = { tape, node } } =
    rules === undefined ? {} : applyRules(compileMasks(rules), { after: { tape, node } });
  return compactText(after);
}

function documentOf(tape: JsonTape, members: ReadonlyMap<string, number>, name: string): JsonNode | undefined {
  const node = members.get(name);
  return node === undefined ? undefined : { tape, node };
}

function requiredText(tape: JsonTape, members: ReadonlyMap<string, number>, name: string, above = ''): string {
  const node = members.get(name);
  if (node === undefined) throw new Rejection(`"${above}${name}" is missing`);
  if (firstByte(tape, node) !== quoteByte) throw new Rejection(`"${above}${name}" is no string`);
  return decodedString(tape, node);
}

function requiredName(tape: JsonTape, members: ReadonlyMap<string, number>, name: string, above = ''): string {
  const text = requiredText(tape, members, name, above);
  const fault = faultOfName(text);
  if (fault !== undefined) throw new Rejection(`"${above}${name}" ${fault}`);
  return text;
}

function optionalName(tape: JsonTape, members: ReadonlyMap<string, number>, name: string): string | undefined {
  const node = members.get(name);
  return node === undefined || isNull(tape, node) ? undefined : requiredName(tape, members, name);
}

function refuseUnknown(members: ReadonlyMap<string, number>, allowed: ReadonlySet<string>, above = ''): void {
  for (const name of members.keys()) {
    if (allowed.has(name)) continue;
    throw new Rejection(
      `"${above}${name.slice(0, maxShownName)}" is not a member of a ${above === '' ? 'change' : 'related item'}`,
    );
  }
}

function isNull(tape: JsonTape, node: number): boolean {
  return firstByte(tape, node) === 0x6e;
}
