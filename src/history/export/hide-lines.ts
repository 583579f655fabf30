import type { ExportFormat } from '../../core/export-history.ts';
import { threaded } from '../../core/fairness/threads.ts';
import { elementsOf, stringOf } from '../../core/json/members.ts';
import { parseJson } from '../../core/json/parse.ts';
import { compactText } from '../../core/json/text.ts';
import type { PathPattern } from '../../core/path-pattern.ts';
import { compiledMasks, maskedPaths } from '../entries/hide-values.ts';

/**
 * The lines of a file with masks in place of hidden values. Takes one JSON array for each line: what stands before `paths`, the paths
 * themselves, and what stands after. It runs in a worker thread for a long piece of a file.
 */
export const hideLines = threaded(
  import.meta.url,
  'hideLines',
  (parts: string, { format, hide }: { format: ExportFormat; hide: readonly PathPattern[] }): string => {
    const rules = compiledMasks(hide);
    const lines = parts.split('\n').filter((line) => line !== '');
    return lines
      .map((line) => {
        const [before, paths, after] = elementsOf(parseJson(line));
        if (paths === undefined) throw new Error('a line of an export has no paths');
        const masked = maskedPaths(compactText(paths), rules);
        const field = format === 'CSV' ? `"${masked.replaceAll('"', '""')}"` : masked;
        return `${stringOf(before)}${field}${stringOf(after)}`;
      })
      .join('');
  },
);
