import { PageHeader } from '../components/page-header.tsx';

export function HistoryPage() {
  return <PageHeader title="History" />;
}
