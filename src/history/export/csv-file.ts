import type { EntryRow, PageOfEntries } from '../entries/entry-store.ts';
import { timeText } from '../entries/entry-text.ts';
import { csvHead } from './export-store.ts';

/** Entries of one file that is answered at once. */
export const maxEntriesOfFile = 10_000;

/** Characters of a part. */
const partLength = 64 * 1024;

/**
 * The file that an export has of these entries, in parts. An export's lines come from the database, in a transaction that stays open until the file
 * is stored; whoever takes this file may take it slowly, so it is made of a page, which holds no connection.
 */
export async function* csvText({ entries, pieces }: PageOfEntries): AsyncGenerator<string> {
  let part = csvHead();
  for await (const some of pieces ?? [entries]) {
    for (const entry of some) {
      part += csvLine(entry);
      if (part.length < partLength) continue;
      yield part;
      part = '';
    }
  }
  yield part;
}

function csvLine({ at, type, entity, entityId, name, schemaVersion, actor, related, paths }: EntryRow): string {
  const fields = [timeText(at), type, entity, entityId, name, schemaVersion, actor, related ?? '[]', paths];
  return `${fields.map(csvField).join()}\r\n`;
}

/** As the routine `csv_field` does it: a spreadsheet takes no field for a formula. */
function csvField(value: string | null | undefined): string {
  if (value === null || value === undefined) return '';
  return `"${/^[=+\-@\t\n\r＝＋－＠]/.test(value) ? "'" : ''}${value.replaceAll('"', '""')}"`;
}
