import type { EntryRow, PageOfEntries } from '../entries/entry-store.ts';
import { timeText } from '../entries/entry-text.ts';
import { csvHead } from './export-store.ts';

/** Maximum entries of a file that is returned at once. */
export const maxEntriesOfFile = 10_000;

const partLength = 64 * 1024;

/**
 * The file that an export has of these entries, in parts. It is written from a page, which holds no connection: a client
 * may take it slowly, while the lines of an export come from a transaction that stays open.
 */
export async function* csvText({ entries, pieces }: PageOfEntries): AsyncGenerator<string> {
  let part = csvHead();
  for await (const piece of pieces ?? [entries]) {
    for (const entry of piece) {
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

/** As the routine `csv_field`: a spreadsheet takes no field for a formula. */
function csvField(value: string | null | undefined): string {
  if (value === null || value === undefined) return '';
  return `"${/^[=+\-@\t\n\r＝＋－＠]/.test(value) ? "'" : ''}${value.replaceAll('"', '""')}"`;
}
