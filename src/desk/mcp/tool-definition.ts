import { createHash } from 'node:crypto';
import { TimeSlice } from '../../core/fairness/time-slice.ts';
import { canonicalJson } from '../../core/json/canonical.ts';
import { memberOf } from '../../providers/members.ts';
import type { Tool } from '../../providers/port.ts';

/** A tool as its server describes it, and as the model gets it. */
export interface ToolDefinition {
  readonly name: string;
  readonly description?: string | undefined;
  /** JSON Schema of an object. Passed on unresolved: references are not fetched. */
  readonly inputSchema: Record<string, unknown>;
}

/** A tool that a server currently offers. */
export interface OfferedTool extends ToolDefinition {
  /** Identifies the approved definition, and changes with it. */
  readonly sha256: string;
  /** Why no agent can have the tool. */
  readonly fault?: string;
}

/** A tool with a malformed definition. */
export interface UnreadableTool {
  /** `#3` for the third tool of a list, if unnamed. */
  readonly name: string;
  readonly fault: string;
}

/** The tools that a server currently offers. */
export interface ToolOffer {
  readonly tools: readonly OfferedTool[];
  /** Not part of the tools. */
  readonly unreadable: readonly UnreadableTool[];
}

/** Parses a tool of a list at a position counted from 0. */
export function readDefinition(tool: unknown, place: number): ToolDefinition | UnreadableTool {
  const name = memberOf(tool, 'name');
  const description = memberOf(tool, 'description');
  const inputSchema = memberOf(tool, 'inputSchema');
  if (typeof name !== 'string') return { name: `#${place + 1}`, fault: 'has no name' };
  if (memberOf(inputSchema, 'type') !== 'object') {
    return { name: name.toWellFormed(), fault: 'has no inputSchema of the type object' };
  }
  if (description !== undefined && typeof description !== 'string') {
    return { name: name.toWellFormed(), fault: 'has a description that is no text' };
  }
  return { name, description, inputSchema: { ...Object(inputSchema) } };
}

/** Bytes of the canonical JSON of a definition. */
export const maxDefinitionBytes = 65_536;

/** Characters of a tool's name for a model: the smallest limit of the providers. */
export const maxToolName = 64;

const between = '__';

/**
 * The name by which a model knows a tool. Names of servers have no `__` and do not end with `_`, so no two tools have
 * the same one.
 *
 * @example
 * toolNameFor('docs', 'search'); // 'docs__search'
 */
export function toolNameFor(server: string, tool: string): string {
  return `${server}${between}${tool}`;
}

/** A tool in the format of models. */
export function toolForModel(server: string, { name, description, inputSchema }: ToolDefinition): Tool {
  return { name: toolNameFor(server, name), description, inputSchema };
}

/** The fault of a tool's name, if any. */
export function faultOfToolName(server: string, tool: string): string | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(tool)) return 'has a name with other characters than A-Z, a-z, 0-9, _ and -';
  const length = toolNameFor(server, tool).length;
  return length > maxToolName
    ? `has a name of ${length} characters with that of its server, and models take ${maxToolName}`
    : undefined;
}

/** The SHA-256 (hexadecimal) of a definition's canonical JSON (RFC 8785), without a missing description. */
export function hashOfTool(definition: ToolDefinition): string {
  return hashOfText(textOfTool(definition));
}

/** The hashed text. */
export function textOfTool({ name, description, inputSchema }: ToolDefinition): string {
  return canonicalJson({ name, description, inputSchema });
}

/** The tools of a server with their hashes, and with what prevents an agent from having them. */
export async function offeredTools(server: string, definitions: readonly ToolDefinition[]): Promise<OfferedTool[]> {
  const names = new Set<string>();
  const tools: OfferedTool[] = [];
  const slice = new TimeSlice();
  for (const { name, description, inputSchema } of definitions) {
    if (slice.isDue) await slice.rest();
    const definition = { name, description, inputSchema };
    const text = textOfTool(definition);
    const fault =
      faultOfToolName(server, name) ??
      (names.has(name) ? 'is offered twice' : undefined) ??
      (Buffer.byteLength(text) > maxDefinitionBytes ? `has more than ${maxDefinitionBytes} bytes of JSON` : undefined);
    names.add(name);
    tools.push({ ...definition, sha256: hashOfText(text), ...(fault === undefined ? {} : { fault }) });
  }
  return tools;
}

function hashOfText(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
