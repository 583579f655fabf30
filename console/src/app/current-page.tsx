import { useErrorBoundary } from 'preact/hooks';
import { useCode } from '../api/use-code.ts';
import { FailureBox } from '../components/failure-box.tsx';
import { Skeleton } from '../components/loading.tsx';
import type { Page } from './pages.ts';

/** Fetches the code of a page and shows it. A fault in it leaves the rest of the console as it is. */
export function CurrentPage({ page }: { readonly page: Page }) {
  const { code: Content, error } = useCode(page.load);
  const [fault] = useErrorBoundary();
  const failure: unknown = fault ?? error;
  if (failure !== undefined) return <FailureBox error={failure} />;
  return Content === undefined ? <Skeleton /> : <Content />;
}
