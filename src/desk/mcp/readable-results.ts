import { memberOf } from '../../providers/members.ts';
import { textOfAnswer } from './answer-text.ts';
import { readDefinition, type UnreadableTool } from './tool-definition.ts';

/** A transport of the protocol's package, as far as used here. */
interface Receiver {
  onmessage?: ((...received: never[]) => void) | undefined;
}

/**
 * Removes malformed parts from results, because the package would reject a whole list for one tool and a whole answer
 * for one block. Keeps the members of tools that Annals uses, and the text of answers. `unreadable` gets the removed
 * tools.
 */
export function readResults(transport: Receiver, unreadable: UnreadableTool[]): void {
  let receive: ((message: unknown, ...more: unknown[]) => void) | undefined;
  Object.defineProperty(transport, 'onmessage', {
    get: () => receive && ((message: unknown, ...more: unknown[]) => receive?.(readable(message, unreadable), ...more)),
    set(next: typeof receive) {
      receive = next;
    },
  });
}

function readable(message: unknown, unreadable: UnreadableTool[]): unknown {
  const result = memberOf(message, 'result');
  const [tools, content] = [memberOf(result, 'tools'), memberOf(result, 'content')];
  if (Array.isArray(tools)) {
    const definitions = tools.flatMap((tool: unknown, index) => {
      const read = readDefinition(tool, index);
      if (!('fault' in read)) return [read];
      unreadable.push(read);
      return [];
    });
    return { ...Object(message), result: { ...Object(result), tools: definitions } };
  }
  if (Array.isArray(content)) {
    const { structuredContent, ...rest } = Object(result);
    const text = textOfAnswer(content, structuredContent);
    const isError = memberOf(result, 'isError') === true;
    return { ...Object(message), result: { ...rest, isError, content: [{ type: 'text', text }] } };
  }
  return message;
}
