import { type JsonObject, stringifyJson } from '@annals/client/json';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { TextArea } from '../../components/forms.tsx';
import { Name } from '../../components/text.tsx';
import type { SchemaFault } from './schema-faults.ts';
import type { SchemaQuestion } from './schema-worker.ts';

interface JsonEditorProps {
  readonly label: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  /** Why the text is no document; undefined where it is one. */
  readonly fault: string | undefined;
  /** Said below a text that is a document. */
  readonly hint?: ComponentChildren;
  readonly isReadOnly?: boolean;
  readonly rows?: number;
}

/** JSON as text. It is sent as it is written, so every digit stays. */
export function JsonEditor({ label, text, onText, fault, hint, isReadOnly = false, rows }: JsonEditorProps) {
  const lines = text.split('\n').length;
  return (
    <TextArea
      label={label}
      error={fault}
      hint={hint}
      rows={rows ?? Math.min(26, Math.max(8, lines + 1))}
      area={{ class: 'json-text mono', dir: 'ltr', spellcheck: false, autocomplete: 'off', readOnly: isReadOnly }}
      value={text}
      onText={onText}
    />
  );
}

/** How a document fits its schema, below the editor. */
export function SchemaNote({ state }: { readonly state: SchemaState }) {
  if (state === 'checking') return <p class="muted">Checking against the schema …</p>;
  if (state === 'not checked') {
    return <p class="muted">The console could not check the schema. The service checks it when you save.</p>;
  }
  if (state.length === 0) return <p class="schema-fits">Fits the schema of its type.</p>;
  return (
    <div class="schema-faults">
      <p>Does not fit the schema of its type:</p>
      <ul>
        {state.map(({ path, message }, index) => (
          <li key={index}>
            <code>
              <Name text={path === '' ? 'document' : path} />
            </code>{' '}
            <Name text={message} />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Milliseconds of a check. A pattern can take forever; then the service alone checks. */
const timeLimit = 2_000;
/** Milliseconds after the last key. */
const pause = 200;

/** Faults; or that the check took too long, or is in progress. */
type SchemaState = readonly SchemaFault[] | 'checking' | 'not checked';

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
