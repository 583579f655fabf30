import type { CorrelationSeal } from '../../core/correlation-seal.ts';
import type { ExportFormat } from '../../core/export-history.ts';
import { TimeSlice } from '../../core/fairness/time-slice.ts';

/**
 * Seals the correlation ids in lines as `openLines` writes them for restricted readers, and returns lines that
 * `hideLines` takes. Each line has between two U+0001, which no JSON text has, the id's JSON text or nothing.
 */
export async function sealLines(
  lines: string,
  format: ExportFormat,
  seal: CorrelationSeal | undefined,
): Promise<string> {
  const slice = new TimeSlice();
  const parts = lines.split('\u0001');
  for (let index = 1; index < parts.length; index += 2) {
    if (slice.isDue) await slice.rest();
    const text = parts[index] ?? '';
    const sealed = text === '' ? undefined : seal?.seal(JSON.parse(text) as string);
    parts[index] = JSON.stringify(fieldOf(sealed, format));
  }
  return parts.join('');
}

/** A sealed text needs no escapes in either format. */
function fieldOf(sealed: string | undefined, format: ExportFormat): string {
  if (format === 'CSV') return sealed === undefined ? ',' : `,"${sealed}"`;
  return sealed === undefined ? '' : `,"correlationId":"${sealed}"`;
}
