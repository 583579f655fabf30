import type { SavedView } from '@annals/client';
import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { later } from '../components/later.tsx';
import { writesViews } from './views.ts';
import './views.css';

const SaveView = later(async () => (await import('./save-view.tsx')).SaveView);

interface SaveViewButtonProps {
  readonly q: string;
  /** The saved view that the query began as. */
  readonly view: SavedView | undefined;
  /** Whether the service refused the query. */
  readonly disabled: boolean;
}

/** Saves the query with its time under a name. Only those who may write views see it. */
export function SaveViewButton({ q, view, disabled }: SaveViewButtonProps) {
  const [isOpen, setOpen] = useState(false);
  if (!writesViews()) return null;
  return (
    <>
      <Button icon="plus" aria-haspopup="dialog" disabled={disabled} onClick={() => setOpen(true)}>
        Save view
      </Button>
      {isOpen ? <SaveView q={q} view={view} onClose={() => setOpen(false)} /> : undefined}
    </>
  );
}
