import { type JsonObject, stringifyJson } from '@annals/client/json';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { SchemaFault } from './schema-faults.ts';
import type { SchemaQuestion } from './schema-worker.ts';

/** Milliseconds of a check. A pattern can take for ever; then the service alone checks. */
const timeLimit = 2_000;
/** Milliseconds after the last key. */
const pause = 200;

/** Faults; or that nobody could check in time, or that the check is under way. */
export type SchemaState = readonly SchemaFault[] | 'checking' | 'not checked';

/** Checks a document against a schema while one types, in a thread that can be ended. */
export function useSchemaFaults(schema: string | undefined, document: JsonObject | undefined): SchemaState {
  const [state, setState] = useState<SchemaState>('checking');
  const worker = useRef<Worker>(undefined);
  useEffect(() => () => worker.current?.terminate(), []);

  const text = document === undefined ? undefined : stringifyJson(document);
  useEffect(() => {
    if (schema === undefined || text === undefined) return;
    setState('checking');
    let limit: ReturnType<typeof setTimeout> | undefined;
    const wait = setTimeout(() => {
      worker.current ??= new Worker(new URL('./schema-worker.ts', import.meta.url), { type: 'module' });
      const used = worker.current;
      const end = (outcome: SchemaState) => {
        clearTimeout(limit);
        if (outcome === 'not checked') {
          used.terminate();
          worker.current = undefined;
        }
        setState(outcome);
      };
      limit = setTimeout(() => end('not checked'), timeLimit);
      used.onmessage = ({ data }: MessageEvent<SchemaFault[]>) => end(data);
      used.onerror = (event) => {
        event.preventDefault();
        end('not checked');
      };
      const question: SchemaQuestion = { schema, document: text };
      used.postMessage(question);
    }, pause);
    return () => {
      clearTimeout(wait);
      clearTimeout(limit);
      // Its answer would be to a text that is no longer there.
      if (worker.current !== undefined) worker.current.onmessage = null;
    };
  }, [schema, text]);
  return state;
}
