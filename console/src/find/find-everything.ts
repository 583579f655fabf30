import { isAborted } from '../api/failure.ts';
import { allows } from '../api/session.ts';
import { historyOf } from '../history/history-view.ts';
import type { FoundGroup, Source } from './found.ts';
import { sources } from './sources.ts';

/** A text that is a query is one thing that is found: its history. */
const query: Source = {
  title: 'Query',
  icon: 'history',
  find: (text) => [{ key: text, label: text, hint: 'changes that match', to: historyOf(text) }],
};

/**
 * Looks through everything that the session may see, all at once, and through the sources of the caller after that. The groups are in the
 * order of the sources, without those that found nothing.
 */
export async function findEverything(
  text: string,
  signal: AbortSignal,
  more: readonly Source[] = [],
): Promise<readonly FoundGroup[]> {
  const asked = [...(isQuery(text) ? [query] : []), ...sources, ...more];
  const allowed = asked.filter(
    ({ scopes, withoutWords = false }) => (scopes === undefined || allows(...scopes)) && (text !== '' || withoutWords),
  );
  const groups = await Promise.all(allowed.map((source) => groupOf(source, text, signal)));
  return groups.filter(({ items, error }) => items.length > 0 || error !== undefined);
}

async function groupOf(source: Source, text: string, signal: AbortSignal): Promise<FoundGroup> {
  try {
    return { source, items: await source.find(text, signal), error: undefined };
  } catch (error) {
    if (isAborted(error)) throw error;
    // What the others have found is still of use.
    return { source, items: [], error };
  }
}

/** Whether a text is written in the query language, and not in words. */
function isQuery(text: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_.]*:/.test(text);
}
