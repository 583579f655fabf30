import type { SavedView } from '@annals/client';
import { useRef, useState } from 'preact/hooks';
import { type EntryPage, readEntries } from '../api/history-reads.ts';
import { useRequest } from '../api/requests.ts';
import { allows, historyAbilities } from '../api/session.ts';
import { Button, CopyButton } from '../components/buttons.tsx';
import { useMarks } from '../components/marks.ts';
import { DialogButton } from '../components/overlays.tsx';
import { PageHeader } from '../components/page.tsx';
import { later } from '../components/states.tsx';
import { Name } from '../components/text.tsx';
import { withTime } from '../query-text/edit-query.ts';
import { queryOfText, textsOfQuery } from '../query-text/text-search.ts';
import { setParameters } from '../router/router.tsx';
import { rangeText } from '../views/saved-views.ts';
import { OpenView, SaveViewButton } from '../views/views.tsx';
import { Entries, WithEntry } from './entries.tsx';
import { HistoryChart } from './history-chart.tsx';
import { type HistoryView, historyView, sentQuery, showQuery } from './history-view.ts';
import { isLive, turnLive, useLive } from './live-feed.ts';
import { QueryBar } from './query-bar.tsx';
import { isWords, useQueryCheck } from './query-faults.ts';
import { Facets, TermChips, TimePresets } from './query-terms.tsx';
import './history-page.css';

const size = 50;

// They come after the entries.
const FacetLists = later(async () => (await import('./facet-list.tsx')).FacetLists);
const LiveLine = later(async () => (await import('./live-line.tsx')).LiveLine);
const ExportDialog = later(async () => (await import('./export-dialog.tsx')).ExportDialog);
/** What some words find. */
const WordsOffer = later(async () => (await import('../find/found-words.tsx')).FoundWords);

/** Everything that changed: a query, its matches over time, and its entries. */
export function HistoryPage() {
  const view = historyView.value;
  if (view.view === undefined || !allows(historyAbilities.all)) return <QueriedHistory view={view} saved={undefined} />;
  return (
    <OpenView key={view.view} id={view.view}>
      {(saved, q, renew) => (
        <QueriedHistory view={view.q === '' ? { ...view, q } : view} saved={saved} onRefresh={renew} />
      )}
    </OpenView>
  );
}

interface QueriedHistoryProps {
  readonly view: HistoryView;
  /** The saved view that the query is, or began as. */
  readonly saved: SavedView | undefined;
  /** Called when the reader asks for what is there now. */
  readonly onRefresh?: () => void;
}

function QueriedHistory({ view, saved, onRefresh }: QueriedHistoryProps) {
  const { q, page, entry } = view;
  const [round, setRound] = useState(0);
  const sent = sentQuery(view);
  const live = useLive(q);
  const isNewest = page === 1 && view.until === undefined;
  const texts = textsOfQuery(q);
  useMarks(texts);
  const list = useRequest(`${sent}\n${page}\n${round}`, async (signal) => {
    const read = () => readEntries({ q: sent, page, size, withContext: true, withTexts: texts.length > 0 }, signal);
    return isLive.value ? await live.read(read, { isNewest }) : await read();
  });
  const { fault, accepted } = useQueryCheck(list, { q, sent });
  const isRefused = fault !== undefined;
  const total = list.isCurrent ? list.value?.totalElements : undefined;
  const newest = useNewest(list.isCurrent ? list.value : undefined, sent);

  const refresh = () => {
    setParameters({ page: undefined, until: undefined }, { replace: true });
    onRefresh?.();
    setRound((count) => count + 1);
  };
  const ofText = isRefused ? queryOfText(q.trim()) : undefined;
  const submit = (next: string) => {
    if (next !== q) showQuery(next);
    else if (ofText !== undefined) showQuery(ofText);
    else refresh();
  };
  const turnTo = (next: number) => {
    setParameters({ page: next === 1 ? undefined : next, until: view.until ?? newest });
  };

  return (
    <WithEntry entry={entry}>
      <PageHeader title={saved === undefined ? 'History' : <Name text={saved.name} />} lead={saved && leadOf(saved)}>
        <SaveViewButton q={q} view={saved} disabled={isRefused} />
        <CopyButton what="the address of this view" label="Share" text={() => location.href} />
        <DialogButton
          icon="download"
          disabled={total === undefined}
          dialog={(close) => <ExportDialog q={sent} total={total ?? 0} onClose={close} />}
        >
          Export
        </DialogButton>
        {allows(historyAbilities.all) ? (
          <Button
            class="live-switch"
            aria-pressed={isLive.value && !isRefused}
            disabled={isRefused}
            onClick={() => {
              turnLive(!isLive.value);
              if (isLive.value) refresh();
            }}
          >
            Live
          </Button>
        ) : undefined}
        <Button icon="refresh" onClick={refresh}>
          Refresh
        </Button>
      </PageHeader>
      <QueryBar q={q} fault={fault} onSubmit={submit} />
      <div class="history-terms">
        <TimePresets q={q} onQuery={showQuery} />
        {isRefused ? undefined : <TermChips q={q} onQuery={showQuery} />}
      </div>
      {isRefused ? (
        <>
          {ofText === undefined ? undefined : (
            <p class="text-search">
              <Button kind="primary" icon="search" onClick={() => showQuery(ofText)}>
                Search for this text in all changes
              </Button>{' '}
              <span class="muted">
                or press <kbd>Enter</kbd>
              </span>
            </p>
          )}
          {isWords(q) ? <WordsOffer text={q.trim()} /> : undefined}
        </>
      ) : (
        <>
          {texts.length === 0 ? undefined : (
            <p class="text-search muted">
              Changes with <Name as="strong" text={texts.join(' … ')} /> inside a value before or after. The search is
              case-sensitive.
            </p>
          )}
          <HistoryChart
            q={accepted}
            round={round}
            onRange={(from, before) => showQuery(withTime(q, { from, before }))}
          />
          <div class="history-columns">
            <Facets summary="Narrow by type, entity, actor or field">
              <FacetLists counted={accepted} q={q} round={round} onQuery={showQuery} entries={list.value?.items} />
            </Facets>
            <Entries list={list} page={page} q={q} open={entry} onQuery={showQuery} onPage={turnTo}>
              {isLive.value ? (
                <div class="live-place">
                  <LiveLine view={live.view.value} onShow={refresh} />
                </div>
              ) : undefined}
            </Entries>
          </div>
        </>
      )}
    </WithEntry>
  );
}

/** Whether the page still shows the saved view, or what has become of its query. */
function leadOf({ range }: SavedView): string {
  return historyView.value.q === '' ? `A saved view of ${rangeText(range)}` : 'A saved view, with another query';
}

/** The time of the newest entry when the query was first shown. Pages after the first stay behind it. */
function useNewest(value: EntryPage | undefined, sent: string): string | undefined {
  const known = useRef<{ sent: string; newest: string | undefined }>({ sent: '', newest: undefined });
  const { until } = historyView.value;
  if (value?.page === 1) known.current = { sent, newest: value.items[0]?.at };
  return until ?? known.current.newest;
}
