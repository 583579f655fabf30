import type { NewExport } from '@annals/client';
import { useRequest } from '../api/requests.ts';
import { allows, readSealed, readsContext } from '../api/session.ts';
import { FormField } from './forms.tsx';

/** What the file of an export is to be. */
type ExportChoice = Required<Pick<NewExport, 'format' | 'context' | 'proof'>>;

export const defaultExportChoice: ExportChoice = { format: 'NDJSON', context: false, proof: false };

interface ExportChoiceProps {
  readonly choice: ExportChoice;
  readonly onChange: (choice: ExportChoice) => void;
}

/**
 * The fields of a form for the file of an export. The context is offered to those who may read it, and proof to those who may
 * read the proof of a history that is sealed.
 */
export function ExportChoiceFields({ choice, onChange }: ExportChoiceProps) {
  // The state of a log that is not there is 404, which the browser would log as an error.
  const { value: isSealed = false } = useRequest(allows('changelog.proof_read') ? 'sealed' : undefined, readSealed);
  return (
    <>
      <FormField label="Format" hint="NDJSON has one JSON object a line. CSV has one line a change, for spreadsheets.">
        {(control) => (
          <select
            {...control}
            value={choice.format}
            disabled={choice.proof}
            onChange={(event) =>
              onChange({ ...choice, format: event.currentTarget.value === 'CSV' ? 'CSV' : 'NDJSON' })
            }
          >
            <option value="NDJSON">NDJSON</option>
            <option value="CSV">CSV</option>
          </select>
        )}
      </FormField>
      {readsContext() ? (
        <label class="check">
          <input
            type="checkbox"
            checked={choice.context}
            onChange={(event) => onChange({ ...choice, context: event.currentTarget.checked })}
          />
          With the context of each change, and how it was recorded
        </label>
      ) : undefined}
      {isSealed ? (
        <label class="check">
          <input
            type="checkbox"
            checked={choice.proof}
            onChange={(event) => onChange({ ...choice, proof: event.currentTarget.checked, format: 'NDJSON' })}
          />
          With proof that nothing was altered, for annals verify. Without a time in the query it has the changes of all
          times.
        </label>
      ) : undefined}
    </>
  );
}
