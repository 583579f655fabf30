import { annals } from '../api/annals.ts';
import { useRequest } from '../api/use-request.ts';
import { QuotaBars } from '../components/quota-bars.tsx';
import { OverviewCard } from './overview-card.tsx';

/** How much of the shared token's quota is used. */
export function QuotaCard({ now }: { readonly now: number }) {
  const requested = useRequest(`usage ${now}`, (signal) => annals().completions.usage({ signal }));
  return (
    <OverviewCard title="Quota of the shared token" requested={requested}>
      {(usage) => <QuotaBars usage={usage} />}
    </OverviewCard>
  );
}
