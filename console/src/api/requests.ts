import { advance, finishInSlices, type Steps } from '@annals/client/json';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { checkReached, UnreachedError, untilReached } from './connection.ts';
import { isAborted } from './failure.ts';

/** What a view knows of an answer of the service. */
export interface Requested<Value> {
  /** The last answer. It stays until the next one, so that nothing moves; undefined after an error. */
  readonly value: Value | undefined;
  /** Of the last call; undefined where it succeeded. */
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Whether `value` answers the current key. */
  readonly isCurrent: boolean;
  readonly reload: () => void;
}

interface State<Value> {
  readonly key: string | undefined;
  readonly value: Value | undefined;
  readonly error: unknown;
  readonly isLoading: boolean;
}

/**
 * Calls the service, and again whenever the key changes. A call that is no longer needed is cancelled; one that did not
 * reach the service is repeated once that is back. Without a key nothing is called.
 *
 * @example
 * const jobs = useRequest('jobs', (signal) => annals().jobs.list({}, { signal }));
 */
export function useRequest<Value>(
  key: string | undefined,
  run: (signal: AbortSignal) => PromiseLike<Value>,
): Requested<Value> {
  const [state, setState] = useState<State<Value>>({
    key: undefined,
    value: undefined,
    error: undefined,
    isLoading: false,
  });
  const [round, setRound] = useState(0);
  const latest = useRef(run);
  latest.current = run;

  // A reload counts the rounds up.
  useEffect(() => {
    if (key === undefined) return;
    const controller = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    void call(latest.current, controller.signal).then((outcome) => {
      if (controller.signal.aborted) return;
      setState({
        key,
        value: 'value' in outcome ? outcome.value : undefined,
        error: 'error' in outcome ? outcome.error : undefined,
        isLoading: false,
      });
    });
    return () => controller.abort();
  }, [key, round]);

  const error = state.key === key ? state.error : undefined;
  return {
    value: error === undefined ? state.value : undefined,
    error,
    isLoading: key !== undefined && (state.isLoading || state.key !== key),
    isCurrent: key !== undefined && state.key === key && error === undefined,
    reload: () => setRound((count) => count + 1),
  };
}

async function call<Value>(run: (signal: AbortSignal) => PromiseLike<Value>, signal: AbortSignal) {
  try {
    return { value: await onceReached(() => run(signal), signal) };
  } catch (error) {
    return { error: isAborted(error) ? undefined : error };
  }
}

/** Runs a call; where it did not reach the service, again once that is back. */
export async function onceReached<Value>(run: () => PromiseLike<Value>, signal?: AbortSignal): Promise<Value> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof UnreachedError)) throw error;
      await untilReached(signal);
    }
  }
}

/** Code that is fetched when it is first needed; `error` where that failed. */
interface FetchedCode<Code> {
  readonly code?: Code;
  readonly error?: unknown;
}

/** Fetches code, such as a page or a dialog, once it is shown. `load` is the same function as long as the code is. */
export function useCode<Code>(load: () => Promise<Code>): FetchedCode<Code> {
  const [fetched, setFetched] = useState<FetchedCode<Code>>({});
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    onceReached(() => reachedCode(load), signal).then(
      (code) => signal.aborted || setFetched({ code }),
      (error: unknown) => signal.aborted || setFetched({ error }),
    );
    return () => leaving.abort();
  }, [load]);
  return fetched;
}

const fetched = new WeakSet<() => Promise<unknown>>();

/** Browsers keep the failure of an import until the page is reloaded. So it is tried only where it will succeed. */
async function reachedCode<Code>(load: () => Promise<Code>): Promise<Code> {
  if (!fetched.has(load)) await checkReached();
  const code = await load();
  fetched.add(load);
  return code;
}

/** Work of a view: its result, the error that ended it, or neither while it runs. */
interface Worked<Result> {
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
 * Works in slices between which the page stays usable, again whenever an input changes. Short work is done at once, so
 * that nothing flickers.
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
      if (!isWanted) throw new Error('This work is no longer needed.');
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

/**
 * Lets the browser handle keys and draw before long work continues. A timer would wait longer, much longer in a hidden
 * tab.
 */
export function giveWay(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

/**
 * Repeats a request every `pause` milliseconds while the tab is seen: states and counts move while work is under way.
 */
export function useReloads(
  { isLoading, reload }: Pick<Requested<unknown>, 'isLoading' | 'reload'>,
  { pause = 5_000, isOn = true }: { readonly pause?: number; readonly isOn?: boolean } = {},
): void {
  useEffect(() => {
    if (isLoading || !isOn) return;
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') reload();
    }, pause);
    return () => clearInterval(timer);
  }, [isLoading, isOn]);
}
