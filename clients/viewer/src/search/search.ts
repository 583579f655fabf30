import type { HistoryRange } from '../history-element.ts';

/** What the reader looks for. Empty texts are all there is. */
export interface Search {
  readonly words: string;
  readonly range: HistoryRange | 'days';
  /** Days of the range `days`: `2026-11-20`. */
  readonly from: string;
  readonly to: string;
  readonly type: '' | 'create' | 'update' | 'delete';
  readonly entity: string;
  readonly actor: string;
}

export interface DocumentId {
  readonly entity: string;
  readonly entityId: string;
}

export const ranges = ['7d', '30d', '90d', '1y', 'all'] as const satisfies readonly HistoryRange[];

export function isRange(text: string | null): text is HistoryRange {
  return ranges.some((range) => range === text);
}

export function searchOf(range: HistoryRange): Search {
  return { words: '', range, from: '', to: '', type: '', entity: '', actor: '' };
}

/** Whether something else than the time chooses among the changes. */
export function isNarrow({ words, type, entity, actor }: Search): boolean {
  return words.trim() !== '' || type !== '' || entity !== '' || actor !== '';
}
