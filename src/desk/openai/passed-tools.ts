import { memberOf } from '../../core/json/members.ts';
import type { JsonSplice } from '../../core/json/splice.ts';
import type { JsonNode } from '../../core/json/tape.ts';
import { removeMembers } from '../formats/document.ts';
import { Members, refused } from '../formats/members.ts';
import { openaiLimits } from './limits.ts';

/** Tools that the vendor runs, by the start of their type. */
const hostedTools =
  /^(?:web_search|file_search|code_interpreter|image_generation|mcp|computer|local_shell|shell|apply_patch|tool_search)/;
const clientTools: Readonly<Record<string, readonly string[]>> = {
  function: ['type', 'function', 'name', 'description', 'parameters', 'strict'],
  custom: ['type', 'custom', 'name', 'description', 'format'],
  namespace: ['type', 'name', 'description', 'tools'],
};

/** Removes the tools that the vendor would run. Returns their types. */
export function leaveOutTools(
  members: Members,
  { document, splice, isShared }: { document: JsonNode; splice: JsonSplice; isShared: boolean },
): Set<string> {
  const tools = (members.list('tools', openaiLimits.tools) ?? []).map(
    (tool, index) => new Members(tool, `tools.${index}`),
  );
  const isHosted = tools.map((tool) => isHostedTool(tool, isShared));
  const leftOut = new Set(tools.filter((_, index) => isHosted[index]).map((tool) => tool.neededText('type')));
  const hasNone = tools.length > 0 && isHosted.every(Boolean);
  checkChoice(members, hasNone);
  const node = memberOf(document, 'tools');
  if (hasNone) removeMembers(document, splice, ['tools', 'tool_choice', 'parallel_tool_calls']);
  else if (leftOut.size > 0 && node !== undefined) splice.remove(node, (index) => isHosted[index] === true);
  return leftOut;
}

/** Whether the vendor runs the tool. A namespace is a group of tools. */
function isHostedTool(tool: Members, isShared: boolean): boolean {
  const type = tool.neededText('type');
  const known = Object.hasOwn(clientTools, type) ? clientTools[type] : undefined;
  if (known === undefined) {
    if (!hostedTools.test(type) || !/^\w{1,64}$/.test(type))
      throw refused(tool.at('type'), 'is not a known type of a tool');
    return true;
  }
  if (isShared) {
    tool.refuseOthers(known);
    tool.object('function')?.refuseOthers(['name', 'description', 'parameters', 'strict']);
  }
  if (type !== 'namespace') return false;
  const inner = tool.list('tools', openaiLimits.tools) ?? [];
  return inner.map((one, index) => isHostedTool(new Members(one, tool.at(`tools.${index}`)), isShared)).some(Boolean);
}

/** Refuses a choice of a tool that is left out. */
function checkChoice(members: Members, hasNone: boolean): void {
  const choice = members.get('tool_choice');
  if (choice === undefined) return;
  if (typeof choice === 'string') members.one('tool_choice', ['auto', 'none', 'required']);
  else checkNamedChoice(new Members(choice, 'tool_choice'));
  if (hasNone && choice !== 'auto' && choice !== 'none') {
    throw refused('tool_choice', 'needs a tool that is not left out');
  }
}

function checkNamedChoice(choice: Members): void {
  if (choice.one('type', ['function', 'custom', 'allowed_tools']) !== 'allowed_tools') return;
  const holder = choice.object('allowed_tools') ?? choice;
  for (const [index, tool] of (holder.list('tools', openaiLimits.tools) ?? []).entries()) {
    new Members(tool, holder.at(`tools.${index}`)).one('type', ['function', 'custom']);
  }
}
