import { useState } from 'preact/hooks';
import { Icon } from '../../../../console/src/components/icon.tsx';
import { ApiError } from '../../../typescript/src/transport/api-error.ts';
import type { ViewerReads } from '../reads/viewer-reads.ts';
import type { TextName } from '../texts/en.ts';
import { useLanguage } from './language-context.ts';

interface CsvButtonProps {
  readonly reads: ViewerReads | undefined;
  readonly q: string;
  readonly isTooLong: boolean;
}

/** Downloads the changes of the list, all pages of it. */
export function CsvButton({ reads, q, isTooLong }: CsvButtonProps) {
  const { text } = useLanguage();
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<TextName>();
  const download = async () => {
    if (reads === undefined) return;
    if (isTooLong) {
      setFault('csvTooMany');
      return;
    }
    setBusy(true);
    setFault(undefined);
    try {
      save(await reads.csv(q), 'changes.csv');
    } catch (error) {
      setFault(faultOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" class="button quiet" part="button csv" disabled={isBusy} onClick={() => void download()}>
        <Icon name="download" />
        {text(isBusy ? 'csvBusy' : 'csv')}
      </button>
      {fault === undefined ? undefined : (
        <p class="csv-fault" role="alert">
          {text(fault)}
        </p>
      )}
    </>
  );
}

/** Changes that a file has at most. */
export const maxCsv = 10_000;

function faultOf(error: unknown): TextName {
  if (!(error instanceof ApiError)) return 'csvFailed';
  if (error.status === 400) return 'csvTooMany';
  return error.status === 403 ? 'csvRefused' : 'csvFailed';
}

function save(content: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser takes what it saves at once.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
