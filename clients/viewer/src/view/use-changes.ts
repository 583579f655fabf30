import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { isUnanswered, type Problem, problemOf } from '../reads/problem.ts';
import type { ChangesPage, ViewerReads } from '../reads/viewer-reads.ts';

export interface AskedChanges {
  readonly q: string;
  /** From 1. */
  readonly page: number;
  readonly size: number;
  /** The query of later pages: without what came since the first one was shown. */
  readonly pinned: string;
}

export interface ShownChanges {
  /** The last answer. It may be that of the question before. */
  readonly page: ChangesPage | undefined;
  /** Whether it answers the question. */
  readonly isAnswered: boolean;
  readonly isLoading: boolean;
  /** Why there is no answer. Beside an answer: why it is not of this moment. */
  readonly problem: Problem | undefined;
  /** When it was last known to be of that moment, in milliseconds since 1970. */
  readonly knownAt: number;
  /** Changes of the query that were recorded since its first page was shown. */
  readonly news: number;
  retry(): void;
}

/** Milliseconds. */
const pollInterval = 30_000;

/**
 * The changes of a question, and how many more there are by and by: asked every 30 s while the page is seen. What is
 * shown stays as it is. `reads` is undefined until the host gives `getToken`. Another `round` asks the same once more.
 */
export function useChanges(
  reads: ViewerReads | undefined,
  { q, page, size, pinned }: AskedChanges,
  { round, onProblem }: { round: number; onProblem: (problem: Problem) => void },
): ShownChanges {
  const [answer, setAnswer] = useState<{ readonly key: string; readonly page: ChangesPage }>();
  const [problem, setProblem] = useState<Problem>();
  const [known, setKnown] = useState({ at: 0, total: 0, news: 0 });
  const [attempt, setAttempt] = useState(0);
  const [isLoading, setLoading] = useState(true);
  const failures = useRef(0);
  const askedKey = useRef('');
  const key = JSON.stringify([q, page, size, round]);
  const isAnswered = answer?.key === key;

  /** Reads, and tells the reader where that fails. A call that was ended tells nothing. */
  const read = async (signal: AbortSignal, work: (open: ViewerReads) => Promise<() => void>) => {
    if (reads === undefined) return;
    try {
      const show = await work(reads);
      if (signal.aborted) return;
      failures.current = 0;
      setProblem(undefined);
      show();
    } catch (error) {
      if (signal.aborted) return;
      failures.current += 1;
      const met = problemOf(error, failures.current);
      setProblem(met);
      onProblem(met);
    }
  };

  // Before the browser draws, which takes long on a slow phone.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key has the whole question.
  useLayoutEffect(() => {
    const ending = new AbortController();
    const { signal } = ending;
    setLoading(true);
    if (askedKey.current !== key) {
      askedKey.current = key;
      failures.current = 0;
      setProblem(undefined);
    }
    void read(signal, async (open) => {
      const found = await open.changes({ q: page === 1 ? q : pinned, page, size }, signal);
      return () => {
        setAnswer({ key, page: found });
        const at = Date.now();
        setKnown((last) => (page === 1 ? { at, total: found.totalElements, news: 0 } : { ...last, at }));
      };
    }).then(() => {
      if (!signal.aborted && reads !== undefined) setLoading(false);
    });
    return () => ending.abort();
  }, [reads, key, attempt]);

  const due = problem === undefined ? known.at + pollInterval : problem.retryAt;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key has the whole question.
  useEffect(() => {
    if (isLoading || due === undefined) return;
    const ending = new AbortController();
    const { signal } = ending;
    let isOver = false;
    const act = () => {
      if (document.visibilityState !== 'visible' || (!isOver && Date.now() < due)) return;
      stop();
      if (!isAnswered) setAttempt((last) => last + 1);
      else
        void read(signal, async (open) => {
          const { totalElements } = await open.changes({ q, page: 1, size: 1 }, signal);
          return () => setKnown(({ total }) => ({ at: Date.now(), total, news: Math.max(0, totalElements - total) }));
        });
    };
    /** The reader or the network is back. Without an answer there was no Retry-After to heed. */
    const actAtOnce = () => {
      isOver ||= problem !== undefined && isUnanswered(problem);
      act();
    };
    const stop = () => {
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', actAtOnce);
      removeEventListener('online', actAtOnce);
    };
    document.addEventListener('visibilitychange', actAtOnce);
    addEventListener('online', actAtOnce);
    const timer = setTimeout(
      () => {
        // By the clock it may be too early, if it was set back.
        isOver = true;
        act();
      },
      Math.max(0, due - Date.now()),
    );
    return () => {
      ending.abort();
      stop();
    };
  }, [reads, key, due, isLoading]);

  return {
    page: answer?.page,
    isAnswered,
    isLoading,
    problem,
    knownAt: known.at,
    news: known.news,
    retry: () => setAttempt((last) => last + 1),
  };
}
