import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { FailureBox } from '../components/failure-box.tsx';
import type { ExportDialog } from './export-dialog.tsx';

interface ExportButtonProps {
  readonly q: string;
  /** How many entries the query finds now; undefined while that is not known. */
  readonly total: number | undefined;
}

/** Opens the dialog for an export. Its code is fetched at the first click: few who read the history export it. */
export function ExportButton({ q, total }: ExportButtonProps) {
  const [shown, setShown] = useState<{ readonly Content?: typeof ExportDialog; readonly error?: unknown }>({});
  const open = () => {
    import('./export-dialog.tsx').then(
      (code) => setShown({ Content: code.ExportDialog }),
      (error: unknown) => setShown({ error }),
    );
  };
  return (
    <>
      <Button icon="download" disabled={total === undefined} onClick={open}>
        Export
      </Button>
      {shown.error === undefined ? undefined : <FailureBox error={shown.error} />}
      {shown.Content === undefined ? undefined : (
        <shown.Content q={q} total={total ?? 0} onClose={() => setShown({})} />
      )}
    </>
  );
}
