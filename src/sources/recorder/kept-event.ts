import { isUtf8 } from 'node:buffer';
import { kindOf, memberOf, membersOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseObject } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';

/** Members of an event that tell where it comes from, and no document. */
const envelope = new Set('specversion id source type time subject datacontenttype op ts_ms ts_us ts_ns'.split(' '));

/** Those of `source` in an event of Debezium. A statement of the database may stand beside them, with its values. */
const originNames =
  'version connector name ts_ms ts_us ts_ns snapshot db schema table collection lsn txid gtid file pos row ord';
const origins = new Set(originNames.split(' '));

const prefix = 'iodebezium';

/**
 * What Annals keeps of an event that it cannot map. If the mapping masks and ignores nothing, it is the text of the
 * event. Otherwise it is only the origin of the event, since it is unknown which of its values a mask covers.
 * Undefined: nothing.
 */
export function keptEvent(text: Buffer, mapping: Mapping | undefined): string | undefined {
  if (!isUtf8(text)) return undefined;
  if (!hides(mapping)) return text.toString('utf8');
  const event = parseObject(text);
  return event && originOf(event);
}

/** The same of a CloudEvent in binary mode, whose attributes are headers. */
export function keptBinaryEvent(
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  mapping: Mapping | undefined,
): string | undefined {
  const members = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    name.startsWith('ce-') ? [[name.slice('ce-'.length), JSON.stringify(value)]] : [],
  );
  if (!hides(mapping) && isUtf8(body)) members.push(['data', JSON.stringify(body.toString('utf8'))]);
  return keptEvent(Buffer.from(objectText(members)), mapping);
}

function hides(mapping: Mapping | undefined): boolean {
  if (mapping === undefined) return false;
  const rules = [...mapping.entities.values(), ...[...mapping.tables.values()].map((table) => table.rules)];
  return rules.some(({ mask, ignore }) => mask.length + ignore.length > 0);
}

function originOf(event: JsonNode): string | undefined {
  const payload = memberOf(event, 'payload');
  const members = membersOf(payload !== undefined && kindOf(payload) === 'object' ? payload : event);
  const parts: [string, JsonNode | string][] = [];
  for (const [name, value] of members) {
    const lower = name.toLowerCase();
    const isOrigin = lower.startsWith(prefix) && (origins.has(lower.slice(prefix.length)) || lower === `${prefix}op`);
    if (kindOf(value) === 'object') {
      if (name === 'source') parts.push([name, scalarsOf(value)]);
    } else if (kindOf(value) !== 'array' && (envelope.has(name) || isOrigin)) parts.push([name, value]);
  }
  return parts.length === 0 ? undefined : objectText(parts);
}

function scalarsOf(source: JsonNode): string {
  return objectText(
    [...membersOf(source)].filter(
      ([name, value]) =>
        origins.has(name.toLowerCase()) && (stringOf(value) !== undefined || kindOf(value) === 'number'),
    ),
  );
}
