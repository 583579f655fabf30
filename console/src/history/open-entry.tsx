import { useEffect, useState } from 'preact/hooks';
import { FailureBox } from '../components/failure-box.tsx';
import type { EntryPanel } from './entry-panel.tsx';

interface OpenEntryProps {
  /** The ref of the entry. */
  readonly entry: string;
  readonly onClose: () => void;
}

/** The detail of an entry. Its code is fetched when the first one is opened, so that the list is there sooner. */
export function OpenEntry(props: OpenEntryProps) {
  const [content, setContent] = useState<{ readonly Content?: typeof EntryPanel; readonly error?: unknown }>({});
  useEffect(() => {
    let isWanted = true;
    import('./entry-panel.tsx').then(
      (code) => isWanted && setContent({ Content: code.EntryPanel }),
      (error: unknown) => isWanted && setContent({ error }),
    );
    return () => {
      isWanted = false;
    };
  }, []);
  if (content.error !== undefined) return <FailureBox error={content.error} />;
  return content.Content === undefined ? null : <content.Content {...props} />;
}
