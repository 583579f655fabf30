import { Name } from '../../components/name.tsx';
import type { SchemaState } from './use-schema-faults.ts';

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
