import type { Circumstances, EntryRow, PageOfEntries } from './store.ts';

/** The body of the answer (spec: change history response) as JSON text. Values go out as they were recorded. */
export function historyText({ total, entries }: PageOfEntries, { page, size }: { page: number; size: number }): string {
  return (
    `{"items":[${entries.map(entryText).join(',')}],"page":${page},"size":${size},` +
    `"totalElements":${total},"totalPages":${Math.ceil(total / size)}}`
  );
}

/** One change entry (spec: change entry). It leaves out `name` and `schemaVersion` if they are unknown (contract 4). */
export function entryText(entry: EntryRow): string {
  const name = entry.name === null ? '' : `"name":${JSON.stringify(entry.name)},`;
  const version = entry.schemaVersion === null ? '' : `"schemaVersion":${JSON.stringify(entry.schemaVersion)},`;
  return (
    `{"at":"${timeText(entry.at)}","type":"${entry.type}","entity":${JSON.stringify(entry.entity)},` +
    `"entityId":${JSON.stringify(entry.entityId)},${name}"paths":${entry.paths},${version}` +
    `"actor":${JSON.stringify(entry.actor)},"related":${entry.related ?? '[]'}${circumstancesText(entry.circumstances)}` +
    `${entry.ref === undefined ? '' : `,"ref":"${entry.ref}"`}` +
    `${entry.cut === undefined ? '' : `,"cut":${JSON.stringify(entry.cut)}`}}`
  );
}

function circumstancesText(circumstances: Circumstances | undefined): string {
  if (circumstances === undefined) return '';
  const { context, way, by } = circumstances;
  const recordedBy = by === null ? { way } : { way, by };
  return `${context === null ? '' : `,"context":${context}`}${way === null ? '' : `,"recordedBy":${JSON.stringify(recordedBy)}`}`;
}

const dayLength = 86_400_000;
const pairs = Array.from({ length: 60 }, (_none, number) => String(number).padStart(2, '0'));
let lastDay = Number.NaN;
let lastDate = '';

/** The same text as Date.toISOString. The entries of a page are mostly of one day, so it writes that date once. */
function timeText(at: number): string {
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
