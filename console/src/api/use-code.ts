import { useEffect, useState } from 'preact/hooks';

/** Code that is fetched when it is first needed; `error` where that failed. */
export interface FetchedCode<Code> {
  readonly code?: Code;
  readonly error?: unknown;
}

/** Fetches code, such as a page or a dialog, once it is shown. `load` is the same function as long as the code is. */
export function useCode<Code>(load: () => Promise<Code>): FetchedCode<Code> {
  const [fetched, setFetched] = useState<FetchedCode<Code>>({});
  useEffect(() => {
    let wanted = true;
    load().then(
      (code) => wanted && setFetched({ code }),
      (error: unknown) => wanted && setFetched({ error }),
    );
    return () => {
      wanted = false;
    };
  }, [load]);
  return fetched;
}
