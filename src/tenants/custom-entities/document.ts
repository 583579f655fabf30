import { threaded } from '../../core/concurrency/threaded.ts';
import { AnnalsError, type ErrorDetail, invalidBody } from '../../core/errors.ts';
import { entriesOf, kindOf, memberOf, membersOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { sizeOfJson } from '../../core/json/size.ts';
import { type JsonNode, JsonSyntaxError } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { shownName } from '../../recording/name-fault.ts';

/** A type or an instance as a client writes it: the members that Annals keeps, and the other members unchanged. */
export interface DocumentInput {
  readonly id: string | undefined;
  /** The version that the writer expects the document to have. */
  readonly version: number | undefined;
  readonly name: JsonNode | undefined;
  /** Members of `metadata` besides those that Annals keeps. */
  readonly metadata: readonly (readonly [string, JsonNode])[];
  readonly rest: readonly (readonly [string, JsonNode])[];
}

/** The members that Annals keeps about a document. Times are in milliseconds since 1970. */
export interface DocumentState {
  readonly id: string;
  readonly version: number;
  readonly createdAt: number;
  readonly modifiedAt: number;
}

const maxLevels = 100;
const kept = new Set(['version', 'createdAt', 'modifiedAt']);

/** Reads the JSON text of a document. Throws validation_violation with a detail for each wrong field. */
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
  if (memberOf(document, '_id') !== undefined) wrong('_id', 'is how sort calls the id; the field is id');
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
    metadata: [...metadata].filter(([key]) => !kept.has(key)),
    rest: entriesOf(document).filter(([key]) => key !== 'id' && key !== 'name' && key !== 'metadata'),
  };
}

/** The JSON text of a document, as Annals stores it and sends it. Every value is as the client wrote it. */
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
  const given = [...(name === undefined ? [] : [name]), ...[...metadata, ...rest].map(([, value]) => value)];
  return given.reduce((sum, value) => sum + sizeOfJson(value).values, valuesOfService);
}

/** The document itself, its id, `metadata`, and the three members of `metadata` that Annals keeps. */
const valuesOfService = 6;

/** Reads the time of a stored document, in milliseconds since 1970. */
export function createdAtOf(document: string): number {
  const metadata = memberOf(parseJson(document), 'metadata');
  return Date.parse(stringOf(metadata && memberOf(metadata, 'createdAt')) ?? '');
}

/** Throws validation_violation where a patched document has other times than the stored one. */
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

/** The name that change entries show. If the name is a map by language, it is the English one, or else the first one. */
export function displayName(name: JsonNode | undefined): string | undefined {
  return shownName(stringOf(name) ?? nameByLanguage(name));
}

/** The name that change entries show of a stored document. */
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
