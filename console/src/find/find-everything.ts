import { useEffect, useMemo } from 'preact/hooks';
import { isAborted } from '../api/failure.ts';
import { allows } from '../api/session.ts';
import { historyOf } from '../history/history-view.ts';
import type { FoundGroup, Source } from './found.ts';
import { readFirstPaths, sourcesWith } from './sources.ts';

/** A text that is a query is one thing that is found: its history. */
const query: Source = {
  title: 'Query',
  icon: 'history',
  find: (text) => [{ key: text, label: text, hint: 'changes that match', to: historyOf(text) }],
};

/** What some words find in everything that the session may see. */
type FindEverything = (text: string, signal: AbortSignal) => Promise<readonly FoundGroup[]>;

/**
 * Looks through everything that the session may see, all at once, and through the sources of the caller after that. The groups are in the
 * order of the sources, without those that found nothing. What does not depend on the text is read once while the caller is on
 * the page.
 */
export function useFindEverything(more: readonly Source[] = []): FindEverything {
  const { find, stop } = useMemo(() => {
    const controller = new AbortController();
    const all = [...sourcesWith(readOnce(() => readFirstPaths(controller.signal))), ...more];
    return { find: findIn(all), stop: () => controller.abort() };
  }, []);
  useEffect(() => stop, []);
  return find;
}

function findIn(sources: readonly Source[]): FindEverything {
  return async (text, signal) => {
    const asked = [...(isQuery(text) ? [query] : []), ...sources];
    const allowed = asked.filter(
      ({ scopes, withoutWords = false }) =>
        (scopes === undefined || allows(...scopes)) && (text !== '' || withoutWords),
    );
    const groups = await Promise.all(allowed.map((source) => groupOf(source, text, signal)));
    return groups.filter(({ items, error }) => items.length > 0 || error !== undefined);
  };
}

/** What failed is read again for the next text. */
function readOnce<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let reading: Promise<Value> | undefined;
  return () => {
    reading ??= read().catch((error: unknown) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
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
