import type { Job, NewExport } from '@annals/client';
import type { ComponentChildren } from 'preact';
import { apiUrl } from '../api/connection.ts';
import { useRequest } from '../api/requests.ts';
import { allows, readSealed, readsContext, readsHistory, session } from '../api/session.ts';
import { CheckField, SelectField } from './forms.tsx';
import { Icon } from './icon.tsx';

/** What the file of an export is to be. */
type ExportChoice = Required<Pick<NewExport, 'format' | 'context' | 'proof' | 'bom' | 'rows'>>;

export const defaultExportChoice: ExportChoice = {
  format: 'NDJSON',
  context: false,
  proof: false,
  bom: true,
  rows: 'change',
};

/** The values of the field: a CSV file has one of two kinds of rows. */
const formats = [
  ['NDJSON', 'NDJSON, one JSON object a line'],
  ['CSV', 'CSV, a row for each change'],
  ['CSV field', 'CSV, a row for each field of a change'],
] as const;

/** What is sent of a choice: the service refuses choices of CSV for other formats. */
export function sentChoice({ bom, rows, ...choice }: ExportChoice): Omit<NewExport, 'type'> {
  return choice.format === 'CSV' ? { ...choice, bom, rows } : choice;
}

interface ExportChoiceProps {
  readonly choice: ExportChoice;
  readonly onChange: (choice: ExportChoice) => void;
}

/** The choices for the file of an export: context for those who may read it, proof if the history is sealed. */
export function ExportChoiceFields({ choice, onChange }: ExportChoiceProps) {
  // The state of a log that is not there is 404, which the browser would log as an error.
  const { value: isSealed = false } = useRequest(allows('changelog.proof_read') ? 'sealed' : undefined, readSealed);
  return (
    <>
      <SelectField
        label="Format"
        hint="CSV is for spreadsheets. A row for each field has its value before and after."
        choices={formats}
        value={choice.rows === 'field' ? 'CSV field' : choice.format}
        disabled={choice.proof}
        onChoose={(chosen) =>
          onChange({
            ...choice,
            format: chosen === 'NDJSON' ? 'NDJSON' : 'CSV',
            rows: chosen === 'CSV field' ? 'field' : 'change',
          })
        }
      />
      {choice.format === 'CSV' ? (
        <CheckField checked={choice.bom} onCheck={(bom) => onChange({ ...choice, bom })}>
          With a byte order mark, by which Excel reads the file as UTF-8
        </CheckField>
      ) : undefined}
      {readsContext() ? (
        <CheckField checked={choice.context} onCheck={(context) => onChange({ ...choice, context })}>
          With the context of each change, and how it was recorded
        </CheckField>
      ) : undefined}
      {isSealed ? (
        <CheckField
          checked={choice.proof}
          onCheck={(proof) => onChange({ ...choice, proof, format: 'NDJSON', rows: 'change' })}
        >
          With proof that nothing was altered, for annals verify. Without a time in the query it has the changes of all
          times.
        </CheckField>
      ) : undefined}
    </>
  );
}

interface DownloadLinkProps {
  readonly job: Job;
  readonly kind?: 'plain' | 'primary';
  /** Left out: the format of the file. */
  readonly children?: ComponentChildren;
}

/** The file of an export that is done. The service sends it as an attachment. */
export function DownloadLink({ job, kind = 'plain', children }: DownloadLinkProps) {
  const { id, type, status, metadata } = job;
  if (type !== 'EXPORT' || status !== 'success' || !readsHistory()) return null;
  if ((metadata.context === true || metadata.searchesContext === true) && !readsContext()) return null;
  const tenant = encodeURIComponent(session.value?.tenant ?? '');
  return (
    <a class={`button ${kind}`} href={`${apiUrl}/ai-service/${tenant}/jobs/${encodeURIComponent(id)}/content`} download>
      <Icon name="download" />
      {children ?? metadata.format ?? 'File'}
    </a>
  );
}
