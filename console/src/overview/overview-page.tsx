import { useState } from 'preact/hooks';
import { allows, readsHistory } from '../api/session.ts';
import { Button } from '../components/buttons.tsx';
import { PageHeader } from '../components/page.tsx';
import { Time } from '../components/values.tsx';
import { BusiestCard, ChangesCard } from './change-cards.tsx';
import { AgentsInTrouble, QuotaCard, RecordersCard, UsageCard } from './service-cards.tsx';
import './overview.css';

const day = 86_400_000;

/** Recent changes, and what needs attention. Each figure leads to what it counts. */
export function OverviewPage() {
  // All figures of the page are about the same time.
  const [now, setNow] = useState(Date.now);
  return (
    <>
      <PageHeader
        title="Overview"
        lead={
          <>
            As of <Time at={now} />
          </>
        }
      >
        <Button icon="refresh" onClick={() => setNow(Date.now())}>
          Refresh
        </Button>
      </PageHeader>
      <div class="overview">
        {readsHistory() ? (
          <>
            <ChangesCard title="Last 24 hours" from={now - day} bars={25} />
            <ChangesCard title="Last 30 days" from={now - 30 * day} bars={32} />
            <BusiestCard title="Busiest actors" field="actor" from={now - 30 * day} />
            <BusiestCard title="Busiest entities" field="entity" from={now - 30 * day} />
          </>
        ) : undefined}
        {allows('ai.agent_read', 'ai.agent_manage') ? <AgentsInTrouble from={now - day} /> : undefined}
        {allows('ai.completion_manage') ? <QuotaCard now={now} /> : undefined}
        {allows('usage.usage_read') ? <UsageCard now={now} /> : undefined}
        {allows('changelog.changelog_manage') ? <RecordersCard now={now} /> : undefined}
      </div>
    </>
  );
}
