import type { Readable } from 'node:stream';
import { clearOnErasure } from '../../core/forgetting.ts';
import { streamOfTexts } from '../../pagination/page-texts.ts';
import type { Circumstances, EntryRow, PageOfEntries } from './entry-store.ts';

/** The body of the answer (spec: change history response) as JSON text. Values go out as they were recorded. */
export function historyText(
  { total, entries }: Pick<PageOfEntries, 'total' | 'entries'>,
  { page, size }: { page: number; size: number },
): string {
  return (
    `{"items":[${entries.map(entryText).join(',')}],"page":${page},"size":${size},` +
    `"totalElements":${total},"totalPages":${Math.ceil(total / size)}}`
  );
}

/** One change entry (spec: change entry). It leaves out `name` and `schemaVersion` if they are unknown (contract 4). */
export function entryText(entry: EntryRow): string {
  const { at, type, entity, entityId, name, schemaVersion, actor, ref, cut, position, cursor } = entry;
  // Part by part: one template of all of them takes longer.
  let text = `{"at":"${timeText(at)}","type":"${type}","entity":${nameText(entity)}`;
  text += `,"entityId":${JSON.stringify(entityId)}`;
  if (name !== null) text += `,"name":${JSON.stringify(name)}`;
  text += `,"paths":${entry.paths}`;
  if (schemaVersion !== null) text += `,"schemaVersion":${JSON.stringify(schemaVersion)}`;
  if (actor !== undefined) text += `,"actor":${nameText(actor)}${whoText(entry)}`;
  text += `,"related":${entry.related ?? '[]'}${circumstancesText(entry.circumstances)}`;
  if (entry.erased) text += `,"erased":${entry.erased}`;
  if (ref !== undefined) text += `,"ref":"${ref}"`;
  if (cut !== undefined) text += `,"cut":${JSON.stringify(cut)}`;
  if (position !== undefined) text += `,"position":${position},"cursor":"${cursor}"`;
  return `${text}}`;
}

/** The members after `actor`, each left out where the entry has none. */
function whoText({ actorId, onBehalfOfName, onBehalfOfId, correlationId }: EntryRow): string {
  let text = actorId == null ? '' : `,"actorId":${nameText(actorId)}`;
  if (onBehalfOfName != null || onBehalfOfId != null) {
    const [name, id] = [onBehalfOfName ?? undefined, onBehalfOfId ?? undefined];
    text += `,"onBehalfOf":${JSON.stringify({ name, id })}`;
  }
  return correlationId == null ? text : `${text},"correlationId":${JSON.stringify(correlationId)}`;
}

/** Most pages have the same entity types and actors, so their JSON texts are cached. */
const nameTexts = new Map<string, string>();
const maxNameTexts = 1_000;
const maxNameLength = 100;
clearOnErasure(nameTexts);

function nameText(name: string): string {
  const known = nameTexts.get(name);
  if (known !== undefined) return known;
  const text = JSON.stringify(name);
  if (name.length > maxNameLength) return text;
  if (nameTexts.size >= maxNameTexts) nameTexts.clear();
  nameTexts.set(name, text);
  return text;
}

function circumstancesText(circumstances: Circumstances | undefined): string {
  if (circumstances === undefined) return '';
  const { context, recordedBy } = circumstances;
  return `${context === null ? '' : `,"context":${context}`}${recordedBy === null ? '' : `,"recordedBy":${recordedBy}`}`;
}

const dayLength = 86_400_000;
const pairs = Array.from({ length: 60 }, (_none, number) => String(number).padStart(2, '0'));
let lastDay = Number.NaN;
let lastDate = '';

/** The same text as Date.toISOString. The entries of a page are mostly of one day, whose date is written once. */
export function timeText(at: number): string {
  const day = Math.floor(at / dayLength);
  if (day !== lastDay) {
    lastDay = day;
    lastDate = new Date(day * dayLength).toISOString().replace(/T.*/, 'T');
  }
  const inDay = at - day * dayLength;
  const seconds = Math.floor(inDay / 1000);
  const minutes = Math.floor(seconds / 60);
  const milliseconds = String(1000 + (inDay % 1000)).slice(1);
  return `${lastDate}${pairs[Math.floor(minutes / 60)]}:${pairs[minutes % 60]}:${pairs[seconds % 60]}.${milliseconds}Z`;
}

/** The body of the answer: a text, or a stream if the page comes in pieces. */
export function historyBody(found: PageOfEntries, paging: { page: number; size: number }): string | Readable {
  if (found.pieces === undefined) return historyText(found, paging);
  return streamOfTexts(historyParts(found, found.pieces, paging));
}

async function* historyParts(
  { total }: PageOfEntries,
  pieces: AsyncIterable<EntryRow[]>,
  paging: { page: number; size: number },
): AsyncGenerator<string> {
  const textOf = (entries: EntryRow[]) => historyText({ total, entries }, paging);
  // An answer without entries shows the text before and after the entries.
  const [head = '', tail = ''] = textOf([]).split(/(?<=\[)(?=\])/);
  let before = head;
  for await (const entries of pieces) {
    const text = textOf(entries);
    yield before + text.slice(head.length, text.length - tail.length);
    before = ',';
  }
  yield tail;
}
