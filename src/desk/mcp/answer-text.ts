import { memberOf } from '../../providers/members.ts';

/**
 * The content blocks of a tool's answer as text for a model, which notes what was left out: blocks that are not text,
 * of unknown types, or malformed. Fetches nothing.
 */
export function textOfAnswer(content: readonly unknown[], structuredContent: unknown): string {
  const texts = content.map(textOfBlock);
  if (structuredContent !== undefined && !content.some((block) => memberOf(block, 'type') === 'text')) {
    texts.push(JSON.stringify(structuredContent));
  }
  return texts.join('\n').toWellFormed();
}

function textOfBlock(block: unknown): string {
  const type = textOf(block, 'type');
  const resource = memberOf(block, 'resource');
  switch (type) {
    case 'text':
      return textOf(block, 'text') ?? leftOut('text without its text');
    case 'image':
    case 'audio':
      return leftOut(`${type} of the type ${textOf(block, 'mimeType')}`);
    case 'resource_link':
      return `[link to ${textOf(block, 'name')}: ${textOf(block, 'uri')}]`;
    case 'resource':
      return textOf(resource, 'text') ?? leftOut(`${textOf(resource, 'uri')}, no text`);
    default:
      return leftOut(type === undefined ? 'content without a type' : `content of the type ${type.slice(0, 64)}`);
  }
}

function leftOut(what: string): string {
  return `[${what}, left out]`;
}

function textOf(value: unknown, name: string): string | undefined {
  const text = memberOf(value, name);
  return typeof text === 'string' ? text : undefined;
}

/**
 * The first bytes of a text, and a note where it was cut. No character is cut in half.
 *
 * @example
 * cutText('äöü', 4); // 'äö\n[The answer was cut: it has 6 bytes.]'
 */
export function cutText(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= maxBytes) return text;
  // UTF-8 continuation bytes start with the bits 10.
  let end = Math.max(0, maxBytes);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${bytes.subarray(0, end).toString('utf8')}\n[The answer was cut: it has ${bytes.length} bytes.]`;
}
