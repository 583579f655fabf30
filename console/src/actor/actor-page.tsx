import { useState } from 'preact/hooks';
import { writtenValue } from '../../../src/query/written.ts';
import { readEntries } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { Button, CopyButton } from '../components/buttons.tsx';
import { PageHeader } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { Entries, WithEntry } from '../history/entries.tsx';
import { FacetList } from '../history/facet-list.tsx';
import { HistoryChart } from '../history/history-chart.tsx';
import { historyOf } from '../history/history-view.ts';
import { useQueryCheck } from '../history/query-faults.ts';
import { Facets, TermChips, TimePresets } from '../history/query-terms.tsx';
import { withTime } from '../query-text/edit-query.ts';
import { Link, navigate, place, setParameters } from '../router/router.tsx';
import '../history/history-page.css';

const size = 30;

/** What one actor did, by day and by type. The address has the actor's name, and the rest of the query as `q`. */
export function ActorPage() {
  const { parameters } = place.value;
  const name = parameters.get('name') ?? '';
  if (name === '') {
    return (
      <EmptyState icon="actor" title="No actor is named" isPage>
        <p>Choose a name in the history to come here.</p>
        <Link to={{ path: 'history' }}>Go to the history</Link>
      </EmptyState>
    );
  }
  return <OneActor key={name} name={name} rest={parameters.get('q') ?? ''} />;
}

function OneActor({ name, rest }: { readonly name: string; readonly rest: string }) {
  const { parameters } = place.value;
  const page = Math.max(1, Number(parameters.get('page')) || 1);
  const entry = parameters.get('entry') ?? undefined;
  const [round, setRound] = useState(0);
  const q = `actor:${writtenValue(name)} ${rest}`.trim();
  const list = useRequest(`${q}\n${page}\n${round}`, (signal) => readEntries({ q, page, size }, signal));
  const { fault, accepted } = useQueryCheck(list, { q, sent: q });
  const show = (next: string) => setParameters({ q: next, page: undefined, entry: undefined });
  // The chips and facets change the rest of the query.
  const withoutActor = (next: string) => navigate(historyOf(next));

  return (
    <WithEntry entry={entry}>
      <PageHeader title={<Name text={name} />} lead="What this actor did">
        <CopyButton what="the address of this view" label="Share" text={() => location.href} />
        <Link to={historyOf(q)} class="button">
          In the history
        </Link>
        <Button icon="refresh" onClick={() => setRound((count) => count + 1)}>
          Refresh
        </Button>
      </PageHeader>
      <div class="history-terms">
        <TimePresets q={rest} onQuery={show} />
        {fault === undefined ? <TermChips q={rest} onQuery={show} /> : undefined}
      </div>
      <HistoryChart q={accepted} round={round} onRange={(from, before) => show(withTime(rest, { from, before }))} />
      <div class="history-columns">
        <Facets summary="Narrow by type, entity or field">
          <FacetList field="type" title="By type" counted={accepted} q={rest} round={round} onQuery={show} />
          <FacetList field="entity" title="By entity" counted={accepted} q={rest} round={round} onQuery={show} />
          <FacetList field="path" title="By field" counted={accepted} q={rest} round={round} onQuery={show} />
        </Facets>
        <Entries
          list={list}
          error={fault === undefined ? list.error : new Error(fault.message)}
          page={page}
          q={q}
          open={entry}
          onQuery={withoutActor}
          onPage={(next) => setParameters({ page: next === 1 ? undefined : next })}
        />
      </div>
    </WithEntry>
  );
}
