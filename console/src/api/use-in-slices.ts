import { advance, finishInSlices, type Steps } from '@annals/client/json';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { giveWay } from './give-way.ts';

/** Work of a view: its result, the error that ended it, or neither while it goes on. */
export interface Worked<Result> {
  readonly value: Result | undefined;
  readonly error: unknown;
}

interface Begun<Result> extends Worked<Result> {
  /** What is left; undefined where the work has ended. */
  readonly rest: Steps<Result> | undefined;
}

/** Milliseconds in which short work ends before the view is drawn for the first time. */
const firstSlice = 4;

/**
 * Works in slices between which the page stays usable, anew whenever an input changes. Short work is done at once, so that nothing
 * flickers.
 *
 * @example
 * const lines = useInSlices(() => lineStarts(text, 100), [text]).value;
 */
export function useInSlices<Result>(work: () => Steps<Result>, inputs: readonly unknown[]): Worked<Result> {
  const begun = useMemo(() => begin(work()), inputs);
  const [ended, setEnded] = useState<{ readonly of: Begun<Result>; readonly outcome: Worked<Result> }>();
  useEffect(() => {
    const { rest } = begun;
    if (rest === undefined) return;
    let isWanted = true;
    const end = (outcome: Worked<Result>) => {
      if (isWanted) setEnded({ of: begun, outcome });
    };
    const pause = async () => {
      await giveWay();
      if (!isWanted) throw new Error('Nobody waits for this any more.');
    };
    finishInSlices(rest, pause).then(
      (value) => end({ value, error: undefined }),
      (error) => end({ value: undefined, error }),
    );
    return () => {
      isWanted = false;
    };
  }, [begun]);
  return ended?.of === begun ? ended.outcome : begun;
}

function begin<Result>(steps: Steps<Result>): Begun<Result> {
  try {
    const { done, value } = advance(steps, firstSlice);
    return done === true
      ? { value, error: undefined, rest: undefined }
      : { value: undefined, error: undefined, rest: steps };
  } catch (error) {
    return { value: undefined, error, rest: undefined };
  }
}
