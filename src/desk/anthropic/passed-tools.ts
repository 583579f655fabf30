import { type Members, refused } from '../formats/members.ts';

/** Tools that the client runs and the vendor describes, by the start of their type. */
const clientTools = /^(?:bash|text_editor|computer|memory)_\w{1,64}$/;

/**
 * Whether the client describes the tool, or it is one of a type that the vendor describes. Throws for any other: the
 * vendor would fetch or run something beside the records.
 */
export function checkTool(tool: Members): 'described' | 'typed' {
  const type = tool.text('type');
  if (type === undefined || type === 'custom') return 'described';
  if (clientTools.test(type)) return 'typed';
  throw refused(tool.at('type'), 'is not supported: it must be left out, be custom, or be a tool that the client runs');
}
