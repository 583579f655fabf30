import { type Members, refused } from '../formats/members.ts';

/** What the tools of a request need of the model's context beside their bytes. */
export interface FoundTools {
  /** Inputs of an unknown number of tokens: files, and tools whose description the vendor has. */
  unbounded: number;
  /** Bytes of the largest tool, which each reference may repeat. */
  largestTool: number;
}

/** Tools that the client runs and the vendor describes, by the start of their type. */
const clientTools = /^(?:bash|text_editor|computer|memory)_\w{1,64}$/;

/**
 * Reads a tool that the client describes, or one of a type that the vendor describes. Throws for any other: the vendor
 * would fetch or run something beside the records.
 */
export function readTool(tool: Members, found: FoundTools): void {
  const type = tool.text('type') ?? 'custom';
  if (clientTools.test(type)) found.unbounded += 1;
  else if (type !== 'custom') {
    throw refused(
      tool.at('type'),
      'is not supported: it must be left out, be custom, or be a tool that the client runs',
    );
  }
  found.largestTool = Math.max(found.largestTool, Buffer.byteLength(JSON.stringify(tool.plain())));
}
