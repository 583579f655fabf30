import { kindOf, membersOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { type JsonNode, JsonSyntaxError } from '../../core/json/tape.ts';
import { compactText } from '../../core/json/text.ts';
import { identityOfCloudEvent } from '../../recording/identity.ts';
import { whoMembers } from '../../recording/mapping/import-line.ts';

/** A CloudEvent (version 1.0) of any mode. */
export interface CloudEvent {
  /** The attributes as text, extensions too. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly data: JsonNode | undefined;
}

/** Why it cannot be recorded. The message has no content of it. */
export class CloudEventError extends Error {}

const maxDepth = 10_001;

/** Reads a body of `application/cloudevents+json`. Throws `CloudEventError`. */
export function readStructuredEvent(event: JsonNode): CloudEvent {
  if (kindOf(event) !== 'object') throw new CloudEventError('is no JSON object');
  const attributes = new Map<string, string>();
  let data: JsonNode | undefined;
  for (const [name, value] of membersOf(event)) {
    if (name === 'data') data = value;
    else if (name === 'data_base64') data = jsonOf(Buffer.from(stringOf(value) ?? '', 'base64').toString('utf8'));
    else if (kindOf(value) !== 'null') attributes.set(name, attributeText(name, value));
  }
  return checked({ attributes, data: data !== undefined && kindOf(data) === 'null' ? undefined : data });
}

/** Attributes that become texts of the change. */
const recorded: ReadonlySet<string> = new Set(['actor', 'actorid', 'onbehalfofname', 'onbehalfofid', 'correlationid']);

function attributeText(name: string, value: JsonNode): string {
  const kind = kindOf(value);
  if (recorded.has(name) && (kind === 'object' || kind === 'array')) {
    throw new CloudEventError(`has an attribute "${name}" that is an ${kind}`);
  }
  return stringOf(value) ?? compactText(value);
}

/** Reads an event in binary mode: the attributes are headers, and the body is the data. Throws `CloudEventError`. */
export function readBinaryEvent(headers: Iterable<readonly [name: string, value: string]>, body: string): CloudEvent {
  const attributes = new Map<string, string>();
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    if (lower.startsWith('ce-')) attributes.set(lower.slice('ce-'.length), percentDecoded(value));
    else if (lower === 'content-type') attributes.set('datacontenttype', value);
  }
  return checked({ attributes, data: body === '' ? undefined : jsonOf(body) });
}

/** The import line (contract 6) of an event, and its identity. */
interface EventLine {
  readonly line: string;
  /** 16 bytes, from the `source` and the `id` of the event. */
  readonly identity: Buffer;
}

/**
 * The change in an event's data. Attributes are the default for `at`, `correlationId`, and who made the change; an `id`
 * in the data is ignored. Throws `CloudEventError`.
 */
export function lineOfCloudEvent({ attributes, data }: CloudEvent): EventLine {
  if (data === undefined) throw new CloudEventError('has no "data"');
  if (kindOf(data) !== 'object') throw new CloudEventError('has "data" that is no JSON object');
  const members = membersOf(data);
  members.delete('id');
  const time = attributes.get('time');
  const line = new Map<string, JsonNode | string>(members);
  if (!members.has('at') && time !== undefined) line.set('at', JSON.stringify(time));
  const isIn = (name: string) => {
    const member = members.get(name);
    return member !== undefined && kindOf(member) !== 'null';
  };
  // All of it comes from one place: a name of the data and an id of the attributes may be two people.
  if (!whoMembers.some(isIn)) for (const [name, value] of whoOfAttributes(attributes)) line.set(name, value);
  const correlationId = attributes.get('correlationid');
  if (!isIn('correlationId') && correlationId !== undefined) line.set('correlationId', JSON.stringify(correlationId));
  return {
    line: objectText(line),
    identity: identityOfCloudEvent(attributes.get('source') ?? '', attributes.get('id') ?? ''),
  };
}

function whoOfAttributes(attributes: ReadonlyMap<string, string>): [string, string][] {
  const text = (name: string): string | undefined => {
    const value = attributes.get(name);
    return value === undefined ? undefined : JSON.stringify(value);
  };
  const person = objectText([
    ['name', text('onbehalfofname')],
    ['id', text('onbehalfofid')],
  ]);
  const who: [string, string | undefined][] = [
    ['actor', text('actor')],
    ['actorId', text('actorid')],
    ['onBehalfOf', person === '{}' ? undefined : person],
  ];
  return who.flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]]));
}

function checked(event: CloudEvent): CloudEvent {
  const { attributes } = event;
  const version = attributes.get('specversion');
  if (version !== '1.0') throw new CloudEventError('has a "specversion" that is not 1.0');
  for (const name of ['id', 'source', 'type']) {
    if ((attributes.get(name) ?? '') === '') throw new CloudEventError(`has no "${name}"`);
  }
  const type = attributes.get('datacontenttype');
  if (type !== undefined && !isJson(type)) throw new CloudEventError('has "data" that is not JSON ("datacontenttype")');
  return event;
}

/** Whether a media type is JSON: `application/json`, `text/json` or any with `+json`. */
function isJson(type: string): boolean {
  return /^[^;]*[/+]json\s*(?:;|$)/i.test(type.trim());
}

function jsonOf(text: string): JsonNode {
  try {
    return parseJson(text, maxDepth);
  } catch (error) {
    if (error instanceof JsonSyntaxError)
      throw new CloudEventError(`has "data" that cannot be read as JSON: ${error.message}`);
    throw error;
  }
}

/** Decodes a header: percent-encoded UTF-8, possibly quoted. */
function percentDecoded(value: string): string {
  const plain = /^"(?:[^"\\]|\\.)*"$/.test(value) ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
  const text = plain.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) =>
    Buffer.from(encoded.replaceAll('%', ''), 'hex').toString('utf8'),
  );
  if (text.includes('\uFFFD')) throw new CloudEventError('has a header with bytes that are not UTF-8');
  return text;
}
