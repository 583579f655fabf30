import { useEffect, useRef, useState } from 'preact/hooks';
import { isAborted } from './failure.ts';

/** What a view knows of an answer of the service. */
export interface Requested<Value> {
  /**
   * The last answer. It stays while a newer one is on its way, so that nothing on the page moves. Undefined after an error: what
   * answered something else is not shown beside it.
   */
  readonly value: Value | undefined;
  /** Of the last call; undefined where it succeeded. */
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Whether `value` is the answer to what is asked for now. */
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
 * Calls the service, and again whenever the key changes. A call that is no longer wanted is cancelled. Without a key nothing is
 * called.
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
    return { value: await run(signal) };
  } catch (error) {
    return { error: isAborted(error) ? undefined : error };
  }
}
