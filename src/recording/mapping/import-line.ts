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
import type { ChangeSource } from '../batches/rejected-changes.ts';
import {
  type Change,
  type ChangeType,
  contentOf,
  differenceOfChange,
  type Person,
  type RelatedItem,
} from '../change.ts';
import { identityOfId, identityOfLine, identityOfRepeatedLine } from '../identity.ts';
import { importTime } from '../import-time.ts';
import { markMaskedDifferences, maxMaskedPath, maxMaskedPaths } from '../masked-differences.ts';
import { faultOfContext, faultOfCorrelation, faultOfName } from '../member-faults.ts';
import type { Occurrences } from '../occurrences.ts';
import { PathsTooLargeError } from '../path-list.ts';
import { applyRules, compileMasks, compileRules } from './apply-rules.ts';
import type { ValueRules } from './mapping.ts';
import type { MappedChange } from './row-change.ts';

/** The result of an import line. A reason names members and positions, never content. */
export type ImportedLine =
  | {
      kind: 'change';
      change: Change;
      hasId: boolean;
      /** Whether the line says who made the change: `actor`, `actorId` or `onBehalfOf`. */
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
const memberNames =
  'op entity entityId at id name actor actorId onBehalfOf correlationId schemaVersion related context before after masked';
export const changeMembers: ReadonlySet<string> = new Set(memberNames.split(' '));

/** Those that say who made the change. */
export const whoMembers = ['actor', 'actorId', 'onBehalfOf'] as const;

const relatedMembers: ReadonlySet<string> = new Set(['entity', 'entityId']);
const personMembers: ReadonlySet<string> = new Set(['name', 'id']);

/** Reasons truncate longer member names. */
const maxShownName = 200;

class Rejection extends Error {}

/**
 * Reads an import line (contract 6), without its line ending, using `tape` as scratch space. The nesting limit applies
 * to `before` and `after`. Null means absent, except for these two. An unknown member rejects the line (contract 3).
 * `occurrences` counts equal lines without an `id`; `rules`: masks and ignores by entity (recording.md 3). The member
 * `masked` lists masked values that differ (docs/decisions/outbox.md).
 */
export function readImportLine(
  line: Buffer,
  tape: JsonTape,
  occurrences: Occurrences | undefined,
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
  occurrences: Occurrences | undefined,
  rules: ReadonlyMap<string, ValueRules>,
): ImportedLine {
  if (!isUtf8(line)) throw new Rejection('is no UTF-8');
  parseOnTape(tape, line, 0, line.length, maximumImportDepth + 1);
  if (firstByte(tape, 0) !== braceByte) throw new Rejection('is no JSON object');
  const members = new Members(tape, 0, 'change');

  const type = typeOfOp.get(members.text('op'));
  if (type === undefined) throw new Rejection('"op" is not insert, create, update, replace or delete');
  const entity = members.name('entity');
  const entityId = members.name('entityId');
  const at = importTime(members.text('at'));
  if (typeof at === 'string') throw new Rejection(`"at" ${at}`);
  const id = members.optionalName('id');
  const name = members.optionalName('name');
  const namedActor = members.optionalName('actor');
  const actor = namedActor ?? 'unknown';
  const actorId = members.optionalName('actorId');
  const onBehalfOf = personOf(tape, members.get('onBehalfOf'));
  const correlationId = correlationOf(members.optionalName('correlationId'));
  const schemaVersion = members.optionalName('schemaVersion');
  const related = relatedItems(tape, members.list('related'));
  const ofEntity = rules.get(entity);
  const context = contextOf(members.get('context'), ofEntity);
  const sides = { before: members.get('before'), after: members.get('after') };
  const { before, after } = ofEntity === undefined ? sides : applyRules(compileRules(ofEntity), sides);
  const masked = maskedPaths(tape, members.list('masked'));
  members.refuseOthers(changeMembers);
  if (masked.length > 0 && before !== undefined && after !== undefined) markMaskedDifferences(after, masked);

  const difference = differenceOfChange(type, before, after);
  if (difference === undefined) return { kind: 'unchanged' };
  const identity = id === undefined ? identityAmongEqualLines(line, occurrences) : identityOfId(id);
  const change: Change = { identity, at, type, entity, entityId, actor, related, ...contentOf(difference) };
  if (actorId !== undefined) change.actorId = actorId;
  if (onBehalfOf !== undefined) change.onBehalfOf = onBehalfOf;
  if (correlationId !== undefined) change.correlationId = correlationId;
  if (name !== undefined) change.name = name;
  if (schemaVersion !== undefined) change.schemaVersion = schemaVersion;
  if (context !== undefined) change.context = context;
  return {
    kind: 'change',
    change,
    hasId: id !== undefined,
    hasActor: (namedActor ?? actorId ?? onBehalfOf) !== undefined,
  };
}

function identityAmongEqualLines(line: Buffer, occurrences: Occurrences | undefined): Buffer {
  const first = identityOfLine(line);
  return occurrences === undefined ? first : identityOfRepeatedLine(first, occurrences.next(first));
}

function relatedItems(tape: JsonTape, items: readonly number[]): RelatedItem[] {
  return items.map((item, index) => {
    const field = `related.${index}`;
    if (firstByte(tape, item) !== braceByte) throw new Rejection(`"${field}" is no object`);
    const members = new Members(tape, item, 'related item', `${field}.`);
    const related = { entity: members.name('entity'), entityId: members.name('entityId') };
    members.refuseOthers(relatedMembers);
    return related;
  });
}

function personOf(tape: JsonTape, person: JsonNode | undefined): Person | undefined {
  if (person === undefined || firstByte(tape, person.node) === nullByte) return undefined;
  if (firstByte(tape, person.node) !== braceByte) throw new Rejection('"onBehalfOf" is no object');
  const members = new Members(tape, person.node, 'person', 'onBehalfOf.');
  const [name, id] = [members.optionalName('name'), members.optionalName('id')];
  members.refuseOthers(personMembers);
  if (name === undefined && id === undefined) throw new Rejection('"onBehalfOf" has neither name nor id');
  return { ...(name !== undefined && { name }), ...(id !== undefined && { id }) };
}

function correlationOf(id: string | undefined): string | undefined {
  const fault = id === undefined ? undefined : faultOfCorrelation(id);
  if (fault !== undefined) throw new Rejection(`"correlationId" ${fault}`);
  return id;
}

/** The paths of masked values that differ, according to the sender. */
function maskedPaths(tape: JsonTape, items: readonly number[]): string[] {
  let length = 0;
  return items.map((item, index) => {
    if (firstByte(tape, item) !== quoteByte) throw new Rejection(`"masked.${index}" is no string`);
    const path = decodedString(tape, item);
    length += path.length;
    if (path.length > maxMaskedPath || length > maxMaskedPaths) throw new Rejection('"masked" is too long');
    return path;
  });
}

function contextOf(context: JsonNode | undefined, rules: ValueRules | undefined): string | undefined {
  if (context === undefined || firstByte(context.tape, context.node) === nullByte) return undefined;
  const fault = faultOfContext(context);
  if (fault !== undefined) throw new Rejection(`"context" ${fault}`);
  const { after = context } = rules === undefined ? {} : applyRules(compileMasks(rules), { after: context });
  return compactText(after);
}

const nullByte = 0x6e;

/** The members of an object of a line. `above`: the path of the object, for reasons. */
class Members {
  readonly #tape: JsonTape;
  readonly #nodes: ReadonlyMap<string, number>;
  readonly #what: string;
  readonly #above: string;

  constructor(tape: JsonTape, object: number, what: string, above = '') {
    this.#tape = tape;
    this.#nodes = memberNodes(tape, object);
    this.#what = what;
    this.#above = above;
  }

  get(name: string): JsonNode | undefined {
    const node = this.#nodes.get(name);
    return node === undefined ? undefined : { tape: this.#tape, node };
  }

  text(name: string): string {
    const node = this.#nodes.get(name);
    if (node === undefined) throw new Rejection(`"${this.#above}${name}" is missing`);
    if (firstByte(this.#tape, node) !== quoteByte) throw new Rejection(`"${this.#above}${name}" is no string`);
    return decodedString(this.#tape, node);
  }

  name(name: string): string {
    const text = this.text(name);
    const fault = faultOfName(text);
    if (fault !== undefined) throw new Rejection(`"${this.#above}${name}" ${fault}`);
    return text;
  }

  optionalName(name: string): string | undefined {
    return this.#isNull(name) ? undefined : this.name(name);
  }

  /** The elements of an optional array. */
  list(name: string): number[] {
    const list = this.#nodes.get(name);
    if (list === undefined || this.#isNull(name)) return [];
    if (firstByte(this.#tape, list) !== bracketByte) throw new Rejection(`"${name}" is no array`);
    const items: number[] = [];
    for (let item = firstChild(this.#tape, list); item !== -1; item = nextChild(this.#tape, item)) items.push(item);
    return items;
  }

  refuseOthers(allowed: ReadonlySet<string>): void {
    for (const name of this.#nodes.keys()) {
      if (allowed.has(name)) continue;
      throw new Rejection(`"${this.#above}${name.slice(0, maxShownName)}" is not a member of a ${this.#what}`);
    }
  }

  #isNull(name: string): boolean {
    const node = this.#nodes.get(name);
    return node === undefined || firstByte(this.#tape, node) === nullByte;
  }
}

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
const noActorScope = '"actor", "actorId" and "onBehalfOf" need the scope recorder.actor_set';

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
  const { type, entity, entityId, name, actor, actorId, onBehalfOf, schemaVersion, related, context } = change;
  // A repeat may derive another one, and must not conflict with it.
  const correlationId = id === undefined && change.derived?.correlationId ? undefined : change.correlationId;
  return objectText([
    ['id', id && JSON.stringify(id)],
    ['op', JSON.stringify(operations[type])],
    ['entity', JSON.stringify(entity)],
    ['entityId', JSON.stringify(entityId)],
    ['at', JSON.stringify(new Date(change.at).toISOString())],
    ['name', name && JSON.stringify(name)],
    ['actor', JSON.stringify(actor)],
    ['actorId', actorId && JSON.stringify(actorId)],
    ['onBehalfOf', onBehalfOf && JSON.stringify(onBehalfOf)],
    ['correlationId', correlationId && JSON.stringify(correlationId)],
    ['schemaVersion', schemaVersion && JSON.stringify(schemaVersion)],
    ['related', related.length === 0 ? undefined : JSON.stringify(related)],
    ['context', context],
    // With an incomplete `before`, its missing columns would appear as new.
    ['before', type === 'create' || isWhole(change) ? undefined : memberOf(parsed, 'before')],
    ['after', type === 'delete' ? undefined : memberOf(parsed, 'after')],
    ['masked', maskedOf(change)],
  ]);
}

/** What a change has that `lineOfChange` leaves out of a line to store. */
export function derivedOf({
  identity,
  derived,
  correlationId,
}: Change): Pick<ChangeSource, 'identity' | 'correlationId'> {
  return { identity, ...(derived?.correlationId && { correlationId }) };
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
