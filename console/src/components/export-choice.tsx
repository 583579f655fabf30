import type { NewExport } from '@annals/client';
import { readsContext } from '../api/session.ts';
import { FormField } from './form-field.tsx';

/** What the file of an export is to be. */
export type ExportChoice = Required<Pick<NewExport, 'format' | 'context'>>;

export const defaultExportChoice: ExportChoice = { format: 'NDJSON', context: false };

interface ExportChoiceProps {
  readonly choice: ExportChoice;
  readonly onChange: (choice: ExportChoice) => void;
}

/** The fields of a form for the file of an export. The context is offered to those who may read it. */
export function ExportChoiceFields({ choice, onChange }: ExportChoiceProps) {
  return (
    <>
      <FormField label="Format" hint="NDJSON has one JSON object a line. CSV has one line a change, for spreadsheets.">
        {(control) => (
          <select
            {...control}
            value={choice.format}
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
    </>
  );
}
