import { type JsonKind, kindOf, memberOf, membersOf, stringOf } from '../../../core/json/members.ts';
import { parseIfJson, parseJson } from '../../../core/json/parse.ts';
import type { JsonNode } from '../../../core/json/tape.ts';
import { compactText } from '../../../core/json/text.ts';
import { identityOf } from '../../../recording/identity.ts';

/** A change event of Debezium, without its envelope. */
export interface DebeziumEvent {
  /** c, u, d, r or t. */
  readonly op: string;
  /** Members of `source`, with names as in CloudEvents: lower case, without `_`. */
  readonly source: ReadonlyMap<string, string>;
  readonly before: JsonNode | undefined;
  readonly after: JsonNode | undefined;
  readonly updateDescription: JsonNode | undefined;
  /** The columns' schema, if the event has it. */
  readonly schema: JsonNode | undefined;
}

export type ReadEvent =
  | { readonly kind: 'event'; readonly event: DebeziumEvent }
  /** A tombstone, heartbeat, transaction marker, schema change or message. */
  | { readonly kind: 'ignored' }
  | { readonly kind: 'rejected'; readonly reason: string };

interface Envelope {
  readonly payload: JsonNode;
  readonly schema: JsonNode | undefined;
}

const changeOps: ReadonlySet<string> = new Set(['c', 'u', 'd', 'r', 't']);
const flattenedMarks: readonly string[] = ['__op', '__deleted', '__table', '__collection', '__source_ts_ms', '__lsn'];
const isFlattened =
  'is a flattened record, which does not tell what changed: take ExtractNewRecordState (or ExtractNewDocumentState) out of "transforms"';

/**
 * Reads a JSON value emitted by Debezium, with or without its schema. Undefined: not Debezium's. `null` is a tombstone.
 *
 * @example
 * readDebeziumEvent(parseJson('{"op":"c","source":{…},"before":null,"after":{"id":1}}'));
 */
export function readDebeziumEvent(value: JsonNode): ReadEvent | undefined {
  if (kindOf(value) === 'null') return { kind: 'ignored' };
  if (kindOf(value) !== 'object') return undefined;
  const envelope = unwrapped(value);
  const { payload, schema } = envelope;
  if (kindOf(payload) === 'null') return { kind: 'ignored' };
  if (kindOf(payload) !== 'object') return undefined;
  const members = membersOf(payload);
  const op = stringOf(members.get('op'));
  const source = members.get('source');
  if (op !== undefined && /^[a-z]$/.test(op) && isKind(source, 'object'))
    return eventOf(op, sourceOf(source), members, schema);
  if (isHousekeeping(members)) return { kind: 'ignored' };
  const isRecord = payload !== value || flattenedMarks.some((mark) => members.has(mark));
  return isRecord ? { kind: 'rejected', reason: isFlattened } : undefined;
}

/**
 * Reads the data of a CloudEvent that Debezium emitted. Such an event has the members of `source` and `op` as extension
 * attributes. Undefined: it is not Debezium's.
 */
export function readDebeziumCloudEvent(
  attributes: ReadonlyMap<string, string>,
  data: JsonNode | undefined,
): ReadEvent | undefined {
  const op = attributes.get('iodebeziumop');
  if (op === undefined) {
    if (attributes.get('type')?.startsWith('io.debezium.connector.') !== true) return undefined;
    return {
      kind: 'rejected',
      reason: 'lacks the attribute iodebeziumop: set "extension.attributes.enable" of the CloudEvents converter',
    };
  }
  if (data === undefined) return { kind: 'ignored' };
  const { payload, schema } = unwrapped(data);
  if (kindOf(payload) !== 'object') return { kind: 'ignored' };
  return eventOf(op, sourceOfAttributes(attributes), membersOf(payload), schema);
}

/** The values of `schema` and `payload`, or the value itself if it has neither. */
function unwrapped(value: JsonNode): Envelope {
  const payload = kindOf(value) === 'object' ? memberOf(value, 'payload') : undefined;
  const schema = payload && memberOf(value, 'schema');
  if (payload === undefined || schema === undefined) return { payload: value, schema: undefined };
  return { payload, schema: isKind(schema, 'object') ? schema : undefined };
}

function eventOf(
  op: string,
  source: ReadonlyMap<string, string>,
  members: ReadonlyMap<string, JsonNode>,
  schema: JsonNode | undefined,
): ReadEvent {
  if (op === 'm') return { kind: 'ignored' };
  if (!changeOps.has(op)) return { kind: 'rejected', reason: '"op" is not one that Annals knows' };
  const side = (name: string) => {
    const node = members.get(name);
    return node === undefined || kindOf(node) === 'null' ? undefined : node;
  };
  const updateDescription = side('updateDescription');
  return {
    kind: 'event',
    event: { op, source, before: side('before'), after: side('after'), updateDescription, schema },
  };
}

/** The scalars of `source` as text; nulls are left out. */
function sourceOf(source: JsonNode): Map<string, string> {
  const texts = new Map<string, string>();
  for (const [name, value] of membersOf(source)) {
    if (kindOf(value) === 'null') continue;
    texts.set(name.toLowerCase().replaceAll('_', ''), stringOf(value) ?? compactText(value));
  }
  return texts;
}

const prefix = 'iodebezium';

/** The members of `source` in the attributes of a CloudEvent. */
function sourceOfAttributes(attributes: ReadonlyMap<string, string>): Map<string, string> {
  const names = [...attributes.keys()].filter((name) => name.startsWith(prefix));
  // `iodebeziumtxid` is of the transaction's metadata, `iodebeziumtxId` of the source. The latter takes precedence.
  const [lower = [], mixed = []] = [true, false].map((is) =>
    names.filter((name) => (name === name.toLowerCase()) === is),
  );
  return new Map(
    [...lower, ...mixed].map((name) => [name.slice(prefix.length).toLowerCase(), attributes.get(name) ?? '']),
  );
}

/** Heartbeats, transaction markers and schema changes. */
function isHousekeeping(members: ReadonlyMap<string, JsonNode>): boolean {
  if (members.size === 1 && isKind(members.get('ts_ms'), 'number')) return true;
  const status = stringOf(members.get('status'));
  if ((status === 'BEGIN' || status === 'END') && isKind(members.get('id'), 'string')) return true;
  return members.has('ddl') && members.has('databaseName');
}

function isKind(node: JsonNode | undefined, kind: JsonKind): node is JsonNode {
  return node !== undefined && kindOf(node) === kind;
}

/** The headers of Debezium's HTTP sink. */
export interface EventHeaders {
  /** The record's key, if a transformation puts it into a header `key`. */
  readonly key?: JsonNode | undefined;
  /** The other key of a row whose key changed. */
  readonly oldKey?: JsonNode | undefined;
  readonly newKey?: JsonNode | undefined;
}

/** The sink's default for "headers.prefix". */
const headerPrefix = 'x-debezium-';

/**
 * Reads request headers. `header` gets a lower-case name. The sink encodes them in base64, or with
 * "headers.encode.base64" false as plain text. Unreadable headers count as missing.
 */
export function eventHeaders(header: (name: string) => string | undefined): EventHeaders {
  return {
    key: keyOf(header(`${headerPrefix}key`)),
    oldKey: keyOf(header(`${headerPrefix}__debezium.oldkey`)),
    newKey: keyOf(header(`${headerPrefix}__debezium.newkey`)),
  };
}

/** The columns of a key that is a struct. */
export function keyColumnsOf(key: JsonNode | undefined): readonly string[] | undefined {
  return key !== undefined && kindOf(key) === 'object' ? [...membersOf(key).keys()] : undefined;
}

function keyOf(text: string | undefined): JsonNode | undefined {
  if (text === undefined || text === '') return undefined;
  const decoded = Buffer.from(text, 'base64');
  const isBase64 = decoded.toString('base64') === text;
  return (
    (isBase64 ? keyOfText(decoded.toString('utf8')) : undefined) ??
    keyOfText(text) ??
    parseJson(JSON.stringify(text.toWellFormed()))
  );
}

function keyOfText(text: string): JsonNode | undefined {
  const key = parseIfJson(text, 100);
  const payload = key && kindOf(key) === 'object' ? memberOf(key, 'payload') : undefined;
  return payload !== undefined && kindOf(payload) === 'object' ? payload : key;
}

/**
 * The members of `source` that identify a change. The connector's version and the times of the envelope do not: they
 * can differ between two deliveries of one event.
 */
const sourceMembers = 'name db schema table collection lsn txid gtid file pos row tsms ord lsid txnnumber'.split(' ');

/**
 * The identity of a change that Debezium emitted: the same for each delivery of an event, unique per event
 * (recording.md 4). `id`: the document's.
 */
export function identityOfEvent(
  { op, source, before, after, updateDescription }: DebeziumEvent,
  id: string | undefined,
): Buffer {
  const text = JSON.stringify([
    ...sourceMembers.map((member) => source.get(member) ?? null),
    op,
    id ?? null,
    before === undefined ? null : compactText(before),
    after === undefined ? ((updateDescription && compactText(updateDescription)) ?? null) : compactText(after),
  ]);
  return identityOf(`annals:debezium:${text}`);
}
