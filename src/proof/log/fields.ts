/**
 * The paths of an entry, each as its name, `before` and `after`: JSON texts, as they are stored, null where a side is
 * not there. The text is as recording writes it; any other is one path without a name whose `after` is the whole text.
 * So texts that differ have different paths.
 *
 * @example
 * splitPaths('{"a":{"before":1,"after":[2]},"b":{"after":"x"}}'); // ['"a"', '1', '[2]', '"b"', null, '"x"']
 */
export function splitPaths(text: string): (string | null)[] {
  if (text === '{}') return [];
  const parts: (string | null)[] = [];
  let at = 0;
  for (;;) {
    if (text.charCodeAt(at) !== (at === 0 ? openBrace : comma) || text.charCodeAt(at + 1) !== quote) break;
    const name = endOfString(text, at + 1);
    if (name === -1 || !text.startsWith(':{', name)) break;
    parts.push(text.slice(at + 1, name));
    at = name + ':{'.length;
    const before = text.startsWith(beforeKey, at) ? endOfValue(text, at + beforeKey.length) : undefined;
    parts.push(before === undefined ? null : text.slice(at + beforeKey.length, before));
    if (before !== undefined) at = before;
    const afterKey = before === undefined ? firstAfterKey : laterAfterKey;
    const after = text.startsWith(afterKey, at) ? endOfValue(text, at + afterKey.length) : undefined;
    parts.push(after === undefined ? null : text.slice(at + afterKey.length, after));
    if (after !== undefined) at = after;
    if (at === -1 || text.charCodeAt(at) !== closeBrace) break;
    at += 1;
    if (text.charCodeAt(at) === closeBrace && at === text.length - 1) return parts;
  }
  return [null, null, text];
}

const beforeKey = '"before":';
const firstAfterKey = '"after":';
const laterAfterKey = ',"after":';

const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** The position after the closing quote of the string that begins at `start`; -1 where it has no end. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
  }
  return -1;
}

/** The position of the comma or brace that follows the value which begins at `start`; -1 where it has no end. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = endOfString(text, at) - 1;
      if (at < 0) return -1;
    } else if (code === openBrace || code === openBracket) depth += 1;
    else if (depth === 0 && (code === comma || code === closeBrace)) return at;
    else if (code === closeBrace || code === closeBracket) depth -= 1;
  }
  return -1;
}

/** What a commitment is made of: the columns of an entry as the database has them. */
export interface CommittedEntry {
  /** 32 hexadecimal digits. */
  readonly identity: string;
  /** Milliseconds. */
  readonly at: number;
  readonly type: string;
  readonly entity: string;
  readonly entityId: string;
  readonly name: string | null;
  readonly schemaVersion: string | null;
  readonly actor: string;
  readonly actorId: string | null;
  readonly onBehalfOfName: string | null;
  readonly onBehalfOfId: string | null;
  readonly correlationId: string | null;
  /** JSON texts, as they are stored. */
  readonly context: string | null;
  readonly recordedBy: string | null;
  readonly marks: string | null;
  readonly related: string | null;
  readonly paths: string;
}

/**
 * Version 2 has four more fields, of who exactly made a change and what belongs together. An entry has it if it has any
 * of these; else version 1, so that what was sealed before there were such fields stays as it is.
 */
export type CommitmentVersion = 1 | 2;

/** The version and the numbers of related items and paths, which determine all labels of a list of fields. */
export interface FieldCounts {
  readonly version: CommitmentVersion;
  readonly related: number;
  readonly paths: number;
}

/** The fields of an entry in the order of their labels; null: absent. */
export interface EntryFields extends FieldCounts {
  readonly texts: readonly (string | null)[];
}

/** The two that a bundle usually hides come first: one node of the salts' tree covers the rest of their half. */
const labels = [
  'identity',
  'context',
  'time',
  'type',
  'entity',
  'entityId',
  'name',
  'schemaVersion',
  'actor',
  'recordedBy',
  'marks',
  // from here on of version 2
  'actorId',
  'onBehalfOfName',
  'onBehalfOfId',
  'correlationId',
] as const;
/** How many of the labels each version has. */
const labelCounts: Readonly<Record<CommitmentVersion, number>> = { 1: 11, 2: labels.length };
const relatedLabels = ['relatedEntity', 'relatedEntityId'] as const;
const pathLabels = ['path', 'before', 'after'] as const;

export type FieldLabel = (typeof labels)[number] | (typeof relatedLabels)[number] | (typeof pathLabels)[number];

/** The number of fields of an entry. */
export function countOfFields({ version, related, paths }: FieldCounts): number {
  return labelCounts[version] + relatedLabels.length * related + pathLabels.length * paths;
}

/** The labels of all fields of an entry, in their order. */
export function labelsOf(counts: FieldCounts): FieldLabel[] {
  return Array.from({ length: countOfFields(counts) }, (_, index) => labelAt(counts, index));
}

/** The label of a field. Throws a RangeError where there is none at that place. */
export function labelAt({ version, related, paths }: FieldCounts, index: number): FieldLabel {
  const relatedPlace = index - labelCounts[version];
  const pathPlace = relatedPlace - relatedLabels.length * related;
  const label =
    relatedPlace < 0
      ? labels[index]
      : pathPlace < 0
        ? relatedLabels[relatedPlace % relatedLabels.length]
        : pathPlace < pathLabels.length * paths
          ? pathLabels[pathPlace % pathLabels.length]
          : undefined;
  if (label === undefined) throw new RangeError(`there is no field ${index}`);
  return label;
}

/** The fields of an entry. Two entries that differ in any of their columns have different ones. */
export function fieldsOf(entry: CommittedEntry): EntryFields {
  const related = relatedTexts(entry.related);
  const paths = splitPaths(entry.paths);
  const who = [entry.actorId, entry.onBehalfOfName, entry.onBehalfOfId, entry.correlationId];
  const version = who.every((text) => text === null) ? 1 : 2;
  return {
    version,
    related: related.length / relatedLabels.length,
    paths: paths.length / pathLabels.length,
    texts: [
      entry.identity,
      entry.context,
      String(entry.at),
      entry.type,
      entry.entity,
      entry.entityId,
      entry.name,
      entry.schemaVersion,
      entry.actor,
      entry.recordedBy,
      entry.marks,
      ...(version === 2 ? who : []),
      ...related,
      ...paths,
    ],
  };
}

/** The items as recording writes them, else the whole text as the id of an item without an entity. */
function relatedTexts(text: string | null): (string | null)[] {
  if (text === null) return [];
  const items = parsedItems(text);
  if (items !== undefined && JSON.stringify(items.map(({ entity, entityId }) => ({ entity, entityId }))) === text) {
    return items.flatMap(({ entity, entityId }) => [entity, entityId]);
  }
  return [null, text];
}

function parsedItems(text: string): { entity: string; entityId: string }[] | undefined {
  let items: unknown;
  try {
    items = JSON.parse(text);
  } catch {
    return undefined;
  }
  return Array.isArray(items) && items.length > 0 && items.every(isItem) ? items : undefined;
}

function isItem(item: unknown): item is { entity: string; entityId: string } {
  if (typeof item !== 'object' || item === null || !('entity' in item) || !('entityId' in item)) return false;
  const { entity, entityId } = item;
  const isText = (one: unknown) => typeof one === 'string' && one.isWellFormed();
  return isText(entity) && isText(entityId);
}

/** What an entry keeps of how it was recorded. */
export interface EntryRecorder {
  readonly way: string;
  readonly by?: string | null;
  readonly iss?: string | null;
  readonly sub?: string | null;
}

/** The text of the field `recordedBy`: the members of the recorder that are there, in this order. */
export function recordedByText({ way, by, iss, sub }: EntryRecorder): string {
  return JSON.stringify({ way, by: by ?? undefined, iss: iss ?? undefined, sub: sub ?? undefined });
}
