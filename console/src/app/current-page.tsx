import type { ComponentType } from 'preact';
import { useEffect, useErrorBoundary, useState } from 'preact/hooks';
import { FailureBox } from '../components/failure-box.tsx';
import { Skeleton } from '../components/loading.tsx';
import type { Page } from './pages.ts';

/** Fetches the code of a page and shows it. A fault in it leaves the rest of the console as it is. */
export function CurrentPage({ page }: { readonly page: Page }) {
  const [content, setContent] = useState<{ readonly Content?: ComponentType; readonly error?: unknown }>({});
  const [fault] = useErrorBoundary();

  useEffect(() => {
    let wanted = true;
    page.load().then(
      (Content) => wanted && setContent({ Content }),
      (reason: unknown) => wanted && setContent({ error: reason }),
    );
    return () => {
      wanted = false;
    };
  }, [page]);

  const error: unknown = fault ?? content.error;
  if (error !== undefined) return <FailureBox error={error} />;
  return content.Content === undefined ? <Skeleton /> : <content.Content />;
}
