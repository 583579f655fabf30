import { isUtf8 } from 'node:buffer';
import { membersOf, objectText, stringOf } from '../../core/json/members.ts';
import { parseObject } from '../../core/json/parse.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { applyRules, compileMasks, compileRules } from '../../recording/mapping/apply-rules.ts';
import { changeMembers } from '../../recording/mapping/import-line.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';

/** Members whose values the rules of the mapping hold for. */
const masked: ReadonlySet<string> = new Set(['before', 'after', 'context']);

/**
 * What is kept of a change that cannot be recorded: its text, masked and without what the mapping ignores, with the actor that it
 * would have had. Undefined where the mapping has rules and the text does not tell which of them hold.
 */
export function keptLine(text: Buffer, clientName: string, mapping: Mapping | undefined): string | undefined {
  const hasRules = mapping !== undefined && mapping.entities.size > 0;
  const object = parseObject(text);
  const line = object && membersOf(object);
  if (line === undefined) return hasRules || !isUtf8(text) ? undefined : text.toString('utf8');
  const entity = stringOf(line.get('entity'));
  if (hasRules && entity === undefined) return undefined;
  const rules = entity === undefined ? undefined : mapping?.entities.get(entity);
  const hasActor = line.has('actor');
  if (rules === undefined) return hasActor ? text.toString('utf8') : lineWithActor(text, clientName);
  const parts: [string, JsonNode | string][] = [];
  for (const [name, value] of line) {
    // No mask holds for a member that is not known. Its name alone is kept, so that a retry is rejected as well.
    if (!masked.has(name)) parts.push([name, changeMembers.has(name) ? value : 'null']);
  }
  const { before, after } = applyRules(compileRules(rules), { before: line.get('before'), after: line.get('after') });
  addMember(parts, 'before', before);
  addMember(parts, 'after', after);
  // Ignored members of a context are kept: that is where they are looked for.
  addMember(parts, 'context', applyRules(compileMasks(rules), { after: line.get('context') }).after);
  const keptText = Buffer.from(objectText(parts));
  return hasActor ? keptText.toString('utf8') : lineWithActor(keptText, clientName);
}

/** A line that names no actor with the client's name, so that a retry records it under that name. */
export function lineWithActor(line: Buffer, clientName: string): string {
  const text = line.toString('utf8');
  const end = text.lastIndexOf('}');
  const members = text.slice(0, end);
  const comma = members.trimEnd().endsWith('{') ? '' : ',';
  return `${members}${comma}"actor":${JSON.stringify(clientName)}${text.slice(end)}`;
}

function addMember(parts: [string, JsonNode | string][], name: string, value: JsonNode | undefined): void {
  if (value !== undefined) parts.push([name, value]);
}
