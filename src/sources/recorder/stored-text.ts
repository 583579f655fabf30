import { isUtf8 } from 'node:buffer';
import { kindOf, memberOf, membersOf, objectText, stringOf } from '../../core/json/members.ts';
import { maximumImportDepth, parseObject } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { applyRules, compileMasks, compileRules } from '../../recording/mapping/apply-rules.ts';
import { changeMembers, whoMembers } from '../../recording/mapping/import-line.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';

/** Members of an event that name its origin, not its document. */
const envelope = new Set('specversion id source type time subject datacontenttype op ts_ms ts_us ts_ns'.split(' '));

/** Members of a Debezium event's `source`. Beside them may be a database statement, with its values. */
const originNames =
  'version connector name ts_ms ts_us ts_ns snapshot db schema table collection lsn txid gtid file pos row ord';
const origins = new Set(originNames.split(' '));

const prefix = 'iodebezium';

/**
 * What is stored of an event that cannot be mapped: its text, if the mapping has no rules; otherwise only its origin,
 * since it is unknown which values a mask covers. Undefined: nothing.
 */
export function storedEvent(text: Buffer, mapping: Mapping | undefined): string | undefined {
  if (!isUtf8(text)) return undefined;
  if (!hides(mapping)) return text.toString('utf8');
  const event = parseObject(text);
  return event && originOf(event);
}

/** For a CloudEvent in binary mode, whose attributes are headers. */
export function storedBinaryEvent(
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  mapping: Mapping | undefined,
): string | undefined {
  const members = Object.entries(headers).flatMap(([name, value]): [string, string][] =>
    name.startsWith('ce-') ? [[name.slice('ce-'.length), JSON.stringify(value)]] : [],
  );
  if (!hides(mapping) && isUtf8(body)) members.push(['data', JSON.stringify(body.toString('utf8'))]);
  return storedEvent(Buffer.from(objectText(members)), mapping);
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

/** Members to which the rules of the mapping apply. */
const masked: ReadonlySet<string> = new Set(['before', 'after', 'context']);

/**
 * What is stored of a rejected change: its text, masked and without ignored values, with who made it. Undefined if the
 * mapping has rules and the text does not show which of them apply.
 */
export function storedLine(text: Buffer, clientName: string, mapping: Mapping | undefined): string | undefined {
  const hasRules = mapping !== undefined && mapping.entities.size > 0;
  const object = parseObject(text);
  const line = object && membersOf(object);
  if (line === undefined) return hasRules || !isUtf8(text) ? undefined : text.toString('utf8');
  const entity = stringOf(line.get('entity'));
  if (hasRules && entity === undefined) return undefined;
  const rules = entity === undefined ? undefined : mapping?.entities.get(entity);
  const hasActor = whoMembers.some((name) => line.has(name));
  if (rules === undefined) return hasActor ? text.toString('utf8') : lineWithActor(text, clientName);
  const parts: [string, JsonNode | undefined | string][] = [];
  for (const [name, value] of line) {
    // No mask applies to an unknown member. Its name alone is stored, so that a retry is rejected too.
    if (!masked.has(name)) parts.push([name, changeMembers.has(name) ? value : 'null']);
  }
  const { before, after } = applyRules(compileRules(rules), { before: line.get('before'), after: line.get('after') });
  parts.push(['before', before], ['after', after]);
  // Ignores do not apply to a context.
  parts.push(['context', applyRules(compileMasks(rules), { after: line.get('context') }).after]);
  const keptText = Buffer.from(objectText(parts));
  return hasActor ? keptText.toString('utf8') : lineWithActor(keptText, clientName);
}

/** A line without its correlation id, which is stored beside it. */
export function lineWithoutCorrelation(line: string | undefined): string | undefined {
  const object = line === undefined ? undefined : parseObject(line, maximumImportDepth + 1);
  if (object === undefined) return line;
  const members = membersOf(object);
  members.delete('correlationId');
  return objectText(members);
}

/** A line that does not say who made the change, with the client's name, so that a retry records it under that name. */
export function lineWithActor(line: Buffer, clientName: string): string {
  const text = line.toString('utf8');
  const end = text.lastIndexOf('}');
  const members = text.slice(0, end);
  const comma = members.trimEnd().endsWith('{') ? '' : ',';
  return `${members}${comma}"actor":${JSON.stringify(clientName)}${text.slice(end)}`;
}
