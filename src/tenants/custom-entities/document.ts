import { AnnalsError, type ErrorDetail, invalidBody } from '../../core/errors.ts';
import { threaded } from '../../core/fairness/threads.ts';
import { sizeOfJson } from '../../core/json/measure.ts';
import { entriesOf, kindOf, memberOf, membersOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { type JsonNode, JsonSyntaxError } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { shownName } from '../../recording/member-faults.ts';

/** A type or an instance in a request: the members that Annals maintains, and the other members unchanged. */
export interface DocumentInput {
  readonly id: string | undefined;
  /** The version that the writer expects. */
  readonly version: number | undefined;
  readonly name: JsonNode | undefined;
  /** Members of `metadata`, except those that Annals maintains. */
  readonly metadata: readonly (readonly [string, JsonNode])[];
  readonly rest: readonly (readonly [string, JsonNode])[];
}

/** The members that Annals maintains. Times are in milliseconds since 1970. */
export interface DocumentState {
  readonly id: string;
  readonly version: number;
  readonly createdAt: number;
  readonly modifiedAt: number;
}

const maxLevels = 100;
const maintained = new Set(['version', 'createdAt', 'modifiedAt']);

/** Parses the JSON text of a document. Throws validation_violation with a detail for each wrong field. */
export function readDocument(text: string): DocumentInput {
  const document = parseObject(text);
  const details: ErrorDetail[] = [];
  const wrong = (field: string, message: string) => {
    details.push({ field, message });
    return undefined;
  };

  const idNode = memberOf(document, 'id');
  const id = stringOf(idNode);
  if (idNode !== undefined && id === undefined) wrong('id', 'must be a string');
  if (memberOf(document, '_id') !== undefined) wrong('_id', 'is the name of the id in sort; the field is id');
  const metadataNode = memberOf(document, 'metadata');
  const metadata =
    metadataNode === undefined
      ? new Map<string, JsonNode>()
      : kindOf(metadataNode) === 'object'
        ? membersOf(metadataNode)
        : (wrong('metadata', 'must be an object') ?? new Map<string, JsonNode>());
  const versionNode = metadata.get('version');
  const version = versionNode === undefined ? undefined : Number(compactText(versionNode));
  if (version !== undefined && !(Number.isSafeInteger(version) && version > 0)) {
    wrong('metadata.version', 'must be a whole number above 0');
  }
  refuse(details);
  return {
    id,
    version,
    name: memberOf(document, 'name'),
    metadata: [...metadata].filter(([key]) => !maintained.has(key)),
    rest: entriesOf(document).filter(([key]) => key !== 'id' && key !== 'name' && key !== 'metadata'),
  };
}

/** The JSON text of a document, as stored and sent. Every value is verbatim. */
export function documentText(input: DocumentInput, state: DocumentState): string {
  const metadata = objectText([
    ['version', String(state.version)],
    ['createdAt', timeText(state.createdAt)],
    ['modifiedAt', timeText(state.modifiedAt)],
    ...input.metadata,
  ]);
  return objectText([
    ['id', JSON.stringify(state.id)],
    ...(input.name === undefined ? [] : [['name', input.name] as const]),
    ['metadata', metadata],
    ...input.rest,
  ]);
}

/** The number of JSON values that `documentText` writes. */
export function valuesOfDocument({ name, metadata, rest }: DocumentInput): number {
  const values = [...(name === undefined ? [] : [name]), ...[...metadata, ...rest].map(([, value]) => value)];
  return values.reduce((sum, value) => sum + sizeOfJson(value).values, valuesOfService);
}

/** The document itself, its id, `metadata`, and the three members of `metadata` that Annals maintains. */
const valuesOfService = 6;

/** The creation time of a stored document, in milliseconds since 1970. */
export function createdAtOf(document: string): number {
  const metadata = memberOf(parseJson(document), 'metadata');
  return Date.parse(stringOf(metadata && memberOf(metadata, 'createdAt')) ?? '');
}

/** Throws validation_violation where the patch changes the times of the stored document. */
export function refuseOtherTimes(stored: string, patched: string): void {
  const timeOf = (text: string, name: string) => {
    const node = parseJson(text);
    const metadata = kindOf(node) === 'object' ? memberOf(node, 'metadata') : undefined;
    const time = metadata && kindOf(metadata) === 'object' ? memberOf(metadata, name) : undefined;
    return time && compactText(time);
  };
  const changed = ['createdAt', 'modifiedAt'].filter((name) => {
    const time = timeOf(patched, name);
    return time !== undefined && time !== timeOf(stored, name);
  });
  refuse(changed.map((name) => ({ field: `metadata.${name}`, message: 'is read-only' })));
}

/** The name shown in change entries. Of a map by language, the English one, or else the first. */
export function displayName(name: JsonNode | undefined): string | undefined {
  return shownName(stringOf(name) ?? nameByLanguage(name));
}

/** The name of a stored document in change entries. */
export const nameOfDocument = threaded(import.meta.url, 'nameOfDocument', (document: string) =>
  displayName(memberOf(parseJson(document), 'name')),
);

/** Whether the value is a map from languages to texts. */
export function isMapByLanguage(value: JsonNode): boolean {
  if (kindOf(value) !== 'object') return false;
  return [...membersOf(value)].every(([key, text]) => /^[A-Za-z0-9_-]{1,35}$/.test(key) && kindOf(text) === 'string');
}

export function refuse(details: readonly ErrorDetail[]): void {
  if (details.length > 0) throw invalidBody(...details);
}

function parseObject(text: string): JsonNode {
  try {
    const node = parseJson(text, maxLevels);
    if (kindOf(node) === 'object') return node;
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
  }
  throw new AnnalsError('validation_violation', 'The request body must be a JSON object.');
}

function nameByLanguage(name: JsonNode | undefined): string | undefined {
  if (name === undefined || kindOf(name) !== 'object') return undefined;
  const members = membersOf(name);
  return stringOf(members.get('en')) ?? [...members.values()].map(stringOf).find((text) => text !== undefined);
}

function timeText(milliseconds: number): string {
  return JSON.stringify(new Date(milliseconds).toISOString());
}
