import { useEffect, useState } from 'preact/hooks';
import type { ViewerReads } from '../reads/viewer-reads.ts';

/** What the filters offer. */
export interface Choices {
  readonly entities: readonly string[];
  readonly actors: readonly string[];
}

const noChoices: Choices = { entities: [], actors: [] };

/**
 * The types and people that most changes of a time have, read one after the other once the list is there. Until they
 * can be read nothing is offered, and each time the list is reloaded (`knownAt`) it is retried.
 */
export function useChoices(
  reads: ViewerReads | undefined,
  { q, knownAt, showsActors }: { q: string; knownAt: number; showsActors: boolean },
): Choices {
  const [found, setFound] = useState<{ readonly key: string; readonly choices: Choices }>();
  const key = JSON.stringify([q, showsActors]);
  const isMissing = knownAt > 0 && found?.key !== key;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a reloaded list is the occasion to retry.
  useEffect(() => {
    if (reads === undefined || !isMissing) return;
    const ending = new AbortController();
    const { signal } = ending;
    const read = async () => {
      const entities = await reads.values('entity', q, signal);
      const actors = showsActors ? await reads.values('actor', q, signal) : [];
      setFound({ key, choices: { entities, actors } });
    };
    read().catch(() => {});
    return () => ending.abort();
  }, [reads, key, isMissing, knownAt]);
  return found?.choices ?? noChoices;
}
