import { Members, refused } from '../formats/members.ts';
import { anthropicLimits } from './limits.ts';
import { type FoundTools, readTool } from './passed-tools.ts';

/** What the contents of a request have beside text. */
export interface Found extends FoundTools {
  images: number;
  /** Of images and files. */
  dataBytes: number;
  /** References to tools, each of which may repeat the tool. */
  references: number;
}

/** Members of a message or of a content block that have further blocks. */
const holders: Readonly<Record<string, readonly string[]>> = {
  text: [],
  image: [],
  document: [],
  search_result: ['content'],
  thinking: [],
  redacted_thinking: [],
  tool_use: [],
  tool_result: ['content'],
  tool_reference: [],
  tool_addition: [],
  tool_removal: [],
  browser_state: [],
  compaction: ['tool_changes'],
};

/** Reads the messages and the instructions. Throws where a block is of an unknown type, or has to be fetched. */
export function readContents(body: Members, found: Found): void {
  readBlocks(body, 'system', found);
  const messages = body.list('messages', anthropicLimits.messages);
  if (messages === undefined || messages.length === 0) throw refused('messages', 'must have at least one message');
  for (const [index, value] of messages.entries()) {
    const message = new Members(value, `messages.${index}`);
    message.neededText('role');
    readBlocks(message, 'content', found);
  }
}

function readBlocks(holder: Members, name: string, found: Found): void {
  const content = holder.get(name);
  if (content === undefined || typeof content === 'string') return;
  if (!Array.isArray(content)) throw refused(holder.at(name), 'must be a string or a list of blocks');
  for (const [place, value] of content.entries()) {
    readBlock(new Members(value, holder.at(`${name}.${place}`)), found);
  }
}

function readBlock(block: Members, found: Found): void {
  const type = block.neededText('type');
  const inner = Object.hasOwn(holders, type) ? holders[type] : undefined;
  if (inner === undefined) {
    throw refused(block.at('type'), 'is not supported: blocks of what the provider fetches or runs cannot be sent');
  }
  const isFile = type === 'image' || type === 'document';
  if (!isFile && typeof block.get('source') === 'object') {
    throw refused(block.at('source'), 'is of another type of block');
  }
  if (isFile) readSource(block, type, found);
  if (type === 'tool_reference') found.references += 1;
  if (type === 'tool_addition' || type === 'tool_removal') readToolChange(block, found);
  for (const name of inner) readBlocks(block, name, found);
}

/** An image, or a document: a file in base64, a text, or blocks. */
function readSource(block: Members, type: 'image' | 'document', found: Found): void {
  const source = block.object('source');
  if (source === undefined) throw refused(block.at('source'), 'is required');
  const allowed = type === 'image' ? (['base64'] as const) : (['base64', 'text', 'content'] as const);
  const kind = source.get('type');
  if (kind === 'url' || kind === 'file') {
    throw refused(source.at('type'), 'must be base64, text or content: nothing is fetched or kept at the provider');
  }
  if (source.get('url') !== undefined) throw refused(source.at('url'), 'is not supported: nothing is fetched');
  source.neededText('type');
  source.one('type', allowed);
  if (kind === 'content') {
    readBlocks(source, 'content', found);
    return;
  }
  const data = source.neededText('data');
  if (kind === 'text') return;
  if (!/^[\w+/=\s-]*$/.test(data)) throw refused(source.at('data'), 'must be base64: nothing is fetched');
  found.dataBytes += data.length;
  if (type === 'image') found.images += 1;
  else found.unbounded += 1;
}

/** A tool that joins or leaves in the middle of the conversation. */
function readToolChange(block: Members, found: Found): void {
  const tool = block.object('tool');
  if (tool === undefined) throw refused(block.at('tool'), 'is required');
  const type = tool.one('type', ['tool_reference', 'tool_definition']);
  if (type === undefined) throw refused(tool.at('type'), 'is required');
  if (type === 'tool_reference') {
    found.references += 1;
    return;
  }
  const definition = tool.object('definition');
  if (definition === undefined) throw refused(tool.at('definition'), 'is required');
  readTool(definition, found);
}
