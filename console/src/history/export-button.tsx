import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { later } from '../components/later.tsx';

const ExportDialog = later(async () => (await import('./export-dialog.tsx')).ExportDialog);

interface ExportButtonProps {
  readonly q: string;
  /** How many entries the query finds now; undefined while that is not known. */
  readonly total: number | undefined;
}

/** Opens the dialog for an export. */
export function ExportButton({ q, total }: ExportButtonProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button icon="download" disabled={total === undefined} onClick={() => setOpen(true)}>
        Export
      </Button>
      {isOpen ? <ExportDialog q={q} total={total ?? 0} onClose={() => setOpen(false)} /> : undefined}
    </>
  );
}
