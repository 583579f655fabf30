import { kindOf, memberOf, membersOf } from '../../../core/json/members.ts';
import { parseIfJson, parseJson } from '../../../core/json/parse.ts';
import type { JsonNode } from '../../../core/json/tape.ts';

/** The headers of Debezium's HTTP sink. */
export interface EventHeaders {
  /** The key of the record, where a transformation puts it into a header named `key`. */
  readonly key?: JsonNode | undefined;
  /** The other key of a row whose key changed. */
  readonly oldKey?: JsonNode | undefined;
  readonly newKey?: JsonNode | undefined;
}

/** The prefix that the sink puts before its headers where "headers.prefix" is not set. */
const prefix = 'x-debezium-';

/**
 * Reads the headers of a request. `header` gives one by its name in lower case. The sink writes them in base64, or as
 * plain text where "headers.encode.base64" is false. A header that cannot be read counts as missing.
 */
export function eventHeaders(header: (name: string) => string | undefined): EventHeaders {
  return {
    key: keyOf(header(`${prefix}key`)),
    oldKey: keyOf(header(`${prefix}__debezium.oldkey`)),
    newKey: keyOf(header(`${prefix}__debezium.newkey`)),
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
