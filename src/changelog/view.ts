import type { EntryRow, PageOfEntries } from './store.ts';

/** The body of the answer (spec: change history response) as JSON text: values go out as they were recorded. */
export function historyText({ total, entries }: PageOfEntries, { page, size }: { page: number; size: number }): string {
  return (
    `{"items":[${entries.map(entryText).join(',')}],"page":${page},"size":${size},` +
    `"totalElements":${total},"totalPages":${Math.ceil(total / size)}}`
  );
}

/** One change entry (spec: change entry); `name` and `schemaVersion` are left out where unknown (contract 4). */
function entryText(entry: EntryRow): string {
  const name = entry.name === null ? '' : `"name":${JSON.stringify(entry.name)},`;
  const version = entry.schemaVersion === null ? '' : `"schemaVersion":${JSON.stringify(entry.schemaVersion)},`;
  return (
    `{"at":"${new Date(entry.at).toISOString()}","type":"${entry.type}","entity":${JSON.stringify(entry.entity)},` +
    `"entityId":${JSON.stringify(entry.entityId)},${name}"paths":${entry.paths},${version}` +
    `"actor":${JSON.stringify(entry.actor)},"related":${entry.related ?? '[]'}}`
  );
}
