import type { Actor } from '@annals/client';
import { useState } from 'preact/hooks';
import { type Entry, readActor, readEntries } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { allows, historyAbilities, readsContext } from '../api/session.ts';
import { Button, CopyButton } from '../components/buttons.tsx';
import { PageHeader } from '../components/page.tsx';
import { EmptyState } from '../components/states.tsx';
import { Entries, WithEntry } from '../history/entries.tsx';
import { FacetList } from '../history/facet-list.tsx';
import { HistoryChart } from '../history/history-chart.tsx';
import { historyOf } from '../history/history-view.ts';
import { useQueryCheck } from '../history/query-faults.ts';
import { Facets, TermChips, TimePresets } from '../history/query-terms.tsx';
import { Person } from '../history/who.tsx';
import { queryOfActor } from '../history/who-queries.ts';
import { showsIds } from '../history/who-shown.ts';
import { withTime } from '../query-text/edit-query.ts';
import { Link, navigate, place, setParameters } from '../router/router.tsx';
import { ActivityCalendar } from './activity-calendar.tsx';
import { NamesCard } from './names-card.tsx';
import '../history/history-page.css';

const size = 30;

/**
 * What one actor did, by day and by type. The address has the actor's id, or the name of one without an id, and the
 * rest of the query as `q`.
 */
export function ActorPage() {
  const { parameters } = place.value;
  const id = parameters.get('id') ?? undefined;
  const name = parameters.get('name') ?? '';
  if (id === undefined && name === '') {
    return (
      <EmptyState icon="actor" title="No actor is named" isPage>
        <p>Choose a name in the history to come here.</p>
        <Link to={{ path: 'history' }}>Go to the history</Link>
      </EmptyState>
    );
  }
  return <OneActor key={id ?? name} id={id} name={name} rest={parameters.get('q') ?? ''} />;
}

interface OneActorProps {
  readonly id: string | undefined;
  /** Of an actor without an id. */
  readonly name: string;
  readonly rest: string;
}

function OneActor({ id, name, rest }: OneActorProps) {
  const { parameters } = place.value;
  const page = Math.max(1, Number(parameters.get('page')) || 1);
  const entry = parameters.get('entry') ?? undefined;
  const [round, setRound] = useState(0);
  const actorTerm = queryOfActor({ id, name });
  const q = `${actorTerm} ${rest}`.trim();
  const list = useRequest(`${q}\n${page}\n${round}`, (signal) =>
    readEntries({ q, page, size, withContext: true }, signal),
  );
  const mayReadNames = id !== undefined && allows(historyAbilities.all);
  const actor = useRequest(mayReadNames ? `${id} ${round}` : undefined, (signal) => readActor(id ?? '', signal));
  const { fault, accepted } = useQueryCheck(list, { q, sent: q });
  const show = (next: string) => setParameters({ q: next, page: undefined, entry: undefined });
  // The chips and facets change the rest of the query.
  const withoutActor = (next: string) => navigate(historyOf(next));
  const narrow = { counted: accepted, q: rest, round, onQuery: show };

  return (
    <WithEntry entry={entry}>
      <PageHeader
        title={<Person name={id === undefined ? name : latestName(actor.value, list.value?.items)} id={id} />}
        lead="What this actor did"
      >
        <CopyButton what="the address of this view" label="Share" text={() => location.href} />
        <Link to={historyOf(q)} class="button">
          In the history
        </Link>
        <Button icon="refresh" onClick={() => setRound((count) => count + 1)}>
          Refresh
        </Button>
      </PageHeader>
      {mayReadNames ? <NamesCard id={id} actor={actor} /> : undefined}
      <ActivityCalendar
        q={accepted === undefined ? undefined : withTime(accepted, {})}
        round={round}
        onDay={(bounds) => show(withTime(rest, bounds))}
      />
      <div class="history-terms">
        <TimePresets q={rest} onQuery={show} />
        {fault === undefined ? <TermChips q={rest} onQuery={show} /> : undefined}
      </div>
      <HistoryChart q={accepted} round={round} onRange={(from, before) => show(withTime(rest, { from, before }))} />
      <div class="history-columns">
        <Facets summary="Narrow by type, entity or field">
          <FacetList field="type" title="By type" {...narrow} />
          <FacetList field="entity" title="By entity" {...narrow} />
          <FacetList field="path" title="By field" {...narrow} />
          {showsIds(list.value?.items) ? (
            <>
              {id === undefined ? <FacetList field="actorId" title="By person" isOptional {...narrow} /> : undefined}
              <FacetList field="onBehalfOf" title="On behalf of" isOptional {...narrow} />
            </>
          ) : undefined}
          {readsContext() ? <FacetList field="context.ip" title="By address" isOptional {...narrow} /> : undefined}
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

/** The name that the person has now; of who may not list people, the one of the newest entry that is shown. */
function latestName(actor: Actor | undefined, entries: readonly Pick<Entry, 'actor'>[] = []): string | undefined {
  return actor?.names[0]?.name ?? entries[0]?.actor;
}
