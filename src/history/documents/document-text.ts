import type { Readable } from 'node:stream';
import { streamOfTexts } from '../../pagination/page-texts.ts';
import type { DocumentAt, DocumentRequest } from './document-at.ts';

/** Characters of a part of a long answer. */
const maxPartLength = 256 * 1024;

export function documentBody(request: DocumentRequest, found: DocumentAt): string | Readable {
  const { document = '' } = found;
  const { before, after } = aroundDocument(request, found);
  if (document.length <= maxPartLength) return `${before}${document}${after}`;
  return streamOfTexts(partsOfText(before, document, after));
}

/** The text of the answer before the document and after it. */
export function aroundDocument(
  { entity, entityId }: DocumentRequest,
  { at, exists, complete, name, document, changes, lastChange }: DocumentAt,
): { before: string; after: string } {
  const time = (moment: number) => new Date(moment).toISOString();
  const head = JSON.stringify({ entity, entityId, at: time(at), exists, complete, ...(name === null ? {} : { name }) });
  const last = lastChange === undefined ? {} : { lastChange: { ...lastChange, at: time(lastChange.at) } };
  const tail = JSON.stringify({ changes, ...last });
  return {
    before: `${head.slice(0, -1)},${document === undefined ? '' : '"document":'}`,
    after: `${document === undefined ? '' : ','}${tail.slice(1)}`,
  };
}

async function* partsOfText(before: string, document: string, after: string): AsyncGenerator<string> {
  yield before;
  for (let start = 0; start < document.length; ) {
    let end = Math.min(document.length, start + maxPartLength);
    // A character of two units stays whole.
    if (isHighSurrogate(document.charCodeAt(end - 1)) && end < document.length) end -= 1;
    yield document.slice(start, end);
    start = end;
  }
  yield after;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}
