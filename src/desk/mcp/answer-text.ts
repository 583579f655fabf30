/** What a tool answered, as far as it is read here. */
export interface AnswerContent {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
}

type ContentBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly mimeType: string; readonly data: string }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name: string }
  | { readonly type: 'resource'; readonly resource: { readonly uri: string; readonly text?: string | undefined } };

/** The answer of a tool as text for a model. Models are told that there was something that is no text. Nothing is fetched. */
export function textOfAnswer({ content, structuredContent }: AnswerContent): string {
  const texts = content.map(textOfBlock);
  if (structuredContent !== undefined && !content.some(({ type }) => type === 'text')) {
    texts.push(JSON.stringify(structuredContent));
  }
  return texts.join('\n').toWellFormed();
}

function textOfBlock(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return `[${block.type} of the type ${block.mimeType}, left out]`;
    case 'resource_link':
      return `[link to ${block.name}: ${block.uri}]`;
    case 'resource':
      return block.resource.text ?? `[${block.resource.uri}, no text, left out]`;
    default:
      return '[content of another kind, left out]';
  }
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
  // Bytes that continue a character begin with the bits 10.
  let end = Math.max(0, maxBytes);
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return `${bytes.subarray(0, end).toString('utf8')}\n[The answer was cut: it has ${bytes.length} bytes.]`;
}
