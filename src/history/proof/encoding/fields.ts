import { splitPaths } from './split-paths.ts';

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
  /** JSON texts, as they are stored. */
  readonly context: string | null;
  readonly recordedBy: string | null;
  readonly marks: string | null;
  readonly related: string | null;
  readonly paths: string;
}

/** How many related items and paths a list of fields is for. They tell all its labels. */
export interface FieldCounts {
  readonly related: number;
  readonly paths: number;
}

/** The fields of an entry in the order of their labels; null: absent. */
export interface EntryFields extends FieldCounts {
  readonly texts: readonly (string | null)[];
}

/** The two that a bundle usually hides stand first: one node of the salts' tree tells all the others of their half. */
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
] as const;
const relatedLabels = ['relatedEntity', 'relatedEntityId'] as const;
const pathLabels = ['path', 'before', 'after'] as const;

export type FieldLabel = (typeof labels)[number] | (typeof relatedLabels)[number] | (typeof pathLabels)[number];

/** The number of fields of an entry. */
export function countOfFields({ related, paths }: FieldCounts): number {
  return labels.length + relatedLabels.length * related + pathLabels.length * paths;
}

/** The labels of all fields of an entry, in their order. */
export function labelsOf(counts: FieldCounts): FieldLabel[] {
  return Array.from({ length: countOfFields(counts) }, (_, index) => labelAt(counts, index));
}

/** The label of a field. Throws a RangeError where there is none at that place. */
export function labelAt({ related, paths }: FieldCounts, index: number): FieldLabel {
  const relatedPlace = index - labels.length;
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
  return {
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
