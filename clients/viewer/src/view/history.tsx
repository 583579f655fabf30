import { and, occurredAt } from '@annals/client/query';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Icon } from '../../../../console/src/components/icon.tsx';
import { Text } from '../../../../console/src/components/text.tsx';
import { ApiError } from '../../../typescript/src/transport/api-error.ts';
import type { HistoryRange } from '../history-element.ts';
import type { Problem } from '../reads/problem.ts';
import type { ViewerReads } from '../reads/viewer-reads.ts';
import { queryOfDocument, queryOfSearch } from '../search/query-of-search.ts';
import { type DocumentId, isNarrow, type Search, searchOf } from '../search/search.ts';
import { documentTitle } from './change-item.tsx';
import { ChangeList } from './change-list.tsx';
import { CsvButton, maxCsv } from './csv-button.tsx';
import { useLanguage } from './language-context.ts';
import { Notice, ProblemNotice } from './notice.tsx';
import { Pager } from './pager.tsx';
import { SearchBar } from './search-bar.tsx';
import { type ShownChanges, useChanges } from './use-changes.ts';
import { useChoices } from './use-choices.ts';

export interface HistoryProps {
  /** Undefined until the host gives `getToken`. */
  readonly reads: ViewerReads | undefined;
  readonly range: HistoryRange;
  readonly pageSize: number;
  readonly csv: boolean;
  /** Another number reloads the list. */
  readonly round: number;
  readonly onProblem: (problem: Problem) => void;
  /** Returns whether the component itself shows the document. */
  readonly onOpen: (document: DocumentId) => boolean;
}

/** What is asked, and since when: a range of time stays where it is while one reads. */
interface Asked {
  readonly search: Search;
  readonly document: DocumentId | undefined;
  readonly page: number;
  /** The time of the newest change of the first page. */
  readonly newest: string | undefined;
  /** Milliseconds since 1970. */
  readonly begun: number;
}

/** The whole of what the component shows. */
export function History({ reads, range, pageSize, csv, round: refreshes, onProblem, onOpen }: HistoryProps) {
  const language = useLanguage();
  const [asked, setAsked] = useState<Asked>(() => begin(searchOf(range)));
  const [rounds, setRounds] = useState(0);
  // Undefined: no change has told it yet.
  const [knownActors, setKnownActors] = useState<boolean>();
  const showsActors = knownActors ?? true;
  const { search, document, page, newest } = asked;
  const q = useQuery(asked, showsActors);
  const onFailure = (problem: Problem) => {
    // Nor may it be asked for one: without a change nobody knew. Once they are known, it is something else that is
    // refused.
    if (problem.error instanceof ApiError && problem.error.status === 400) setKnownActors((known) => known ?? false);
    onProblem(problem);
  };
  const pinned = newest === undefined ? q : `${q} ${and(occurredAt.until(newest))}`;
  const shown = useChanges(
    reads,
    { q, page, size: pageSize, pinned },
    { round: refreshes + rounds, onProblem: onFailure },
  );
  const timeAlone = useQuery(
    { ...asked, search: { ...searchOf('all'), range: search.range, from: search.from, to: search.to } },
    showsActors,
  );
  const choices = useChoices(reads, { q: timeAlone, knownAt: shown.knownAt, showsActors });
  const top = useRef<HTMLHeadingElement>(null);
  const openedFrom = useRef<Asked>(undefined);
  const items = shown.page?.items ?? [];

  // A token with `actors: false` shows no actor at all.
  useEffect(() => {
    if (items.length > 0) setKnownActors(items.some(({ actor }) => actor !== undefined));
  }, [items]);

  const show = (next: Asked) => {
    setAsked(next);
    // The reader goes on at the top of what comes.
    top.current?.focus({ preventScroll: true });
    top.current?.scrollIntoView({ block: 'nearest' });
  };
  const showNews = () => {
    setRounds((last) => last + 1);
    show({ ...asked, page: 1, newest: undefined });
  };
  const open = (opened: DocumentId) => {
    if (!onOpen(opened)) return;
    openedFrom.current = asked;
    show({ ...begin(search), document: opened });
  };
  const goBack = () => show(openedFrom.current ?? begin(search));
  const goToPage = (next: number) =>
    show({ ...asked, page: next, newest: next === 1 ? undefined : (newest ?? items[0]?.at) });

  const total = shown.page?.totalElements ?? 0;
  const count = shown.isAnswered ? language.counted('changes', total) : '';
  const title = document === undefined ? undefined : titleOf(document, shown, language.entity(document.entity));
  return (
    <section
      class="history"
      part="history"
      dir={language.layout}
      aria-label={language.text('label')}
      aria-busy={shown.isLoading}
    >
      {document === undefined ? (
        <SearchBar
          search={search}
          choices={choices}
          showsActors={showsActors}
          today={language.dayOf(asked.begun)}
          onSearch={(next) => setAsked(begin(next))}
        />
      ) : (
        <button type="button" class="button quiet back" part="button back" onClick={goBack}>
          <Icon name="previous" />
          {language.text('back')}
        </button>
      )}
      <header class="status" part="status">
        <h2 ref={top} tabIndex={-1} class="total" part="total">
          {title === undefined ? undefined : (
            <bdi class="document-title">
              <Text text={title} />
            </bdi>
          )}
          <span class={title === undefined ? '' : 'soft'}>{count}</span>
        </h2>
        {/* A heading has no name from what is announced. */}
        <p class="visually-hidden" role="status">
          {count}
        </p>
        <span class="actions">
          {document === undefined && isNarrow(search) ? (
            <button
              type="button"
              class="button quiet"
              part="button"
              onClick={() =>
                setAsked(begin({ ...searchOf('all'), range: search.range, from: search.from, to: search.to }))
              }
            >
              {language.text('clear')}
            </button>
          ) : undefined}
          {csv && total > 0 && shown.isAnswered ? (
            <CsvButton key={q} reads={reads} q={q} isTooLong={total > maxCsv} />
          ) : undefined}
        </span>
      </header>
      <div class="float" role="status">
        {shown.isAnswered && shown.problem === undefined && shown.news > 0 ? (
          <button type="button" class="button pill" part="button news" onClick={showNews}>
            <Icon name="up" />
            {language.counted('news', shown.news)}
          </button>
        ) : undefined}
        {staysOutdated(shown) ? <Outdated shown={shown} /> : undefined}
      </div>
      <Body
        shown={shown}
        reads={reads}
        asked={asked}
        onOpen={document === undefined ? open : undefined}
        onSearch={(next) => setAsked(begin(next))}
      />
      {shown.page !== undefined && (shown.isLoading || shown.isAnswered || staysOutdated(shown)) ? (
        <Pager page={page} pages={shown.page.totalPages} onPage={goToPage} />
      ) : undefined}
    </section>
  );
}

function begin(search: Search): Asked {
  return { search, document: undefined, page: 1, newest: undefined, begun: Date.now() };
}

/** The words of the host serve the search as they are when it begins: passing them again sends no request. */
function useQuery({ search, document, begun }: Asked, showsActors: boolean): string {
  const language = useLanguage();
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above.
  return useMemo(
    () =>
      String(
        document === undefined
          ? queryOfSearch(search, {
              begun,
              today: language.dayOf(begun),
              zone: language.zone,
              meanings: language.meanings,
              showsActors,
            })
          : queryOfDocument(document),
      ),
    [JSON.stringify(search), document, begun, language.zone, showsActors],
  );
}

interface BodyProps {
  readonly shown: ShownChanges;
  readonly reads: ViewerReads | undefined;
  readonly asked: Asked;
  readonly onOpen: ((document: DocumentId) => void) | undefined;
  readonly onSearch: (search: Search) => void;
}

/** The list; or why there is none, which is never an empty list. */
function Body({ shown, reads, asked: { search, document }, onOpen, onSearch }: BodyProps) {
  const { text } = useLanguage();
  const { page, isAnswered, problem } = shown;
  if (!isAnswered && problem !== undefined && !staysOutdated(shown))
    return <ProblemNotice problem={problem} onRetry={shown.retry} />;
  if (page === undefined) return <Skeleton />;
  if (page.items.length > 0) {
    return (
      <div class={isAnswered || problem !== undefined ? 'answered' : 'waiting'}>
        <ChangeList changes={page.items} reads={reads} onOpen={onOpen} />
      </div>
    );
  }
  if (!isAnswered) return <Skeleton />;
  const isAll = search.range === 'all' || document !== undefined;
  if (isAll && !isNarrow(search)) {
    return (
      <Notice icon="clock" title={text('none')}>
        <p class="soft">{text('noneYet')}</p>
      </Notice>
    );
  }
  return (
    <Notice icon="search" title={text('noneFound')}>
      <p class="soft">{text(isNarrow(search) ? 'noneMatch' : 'noneInRange')}</p>
      {isAll ? undefined : (
        <button type="button" class="button" part="button" onClick={() => onSearch({ ...search, range: 'all' })}>
          {text('showAllTime')}
        </button>
      )}
    </Notice>
  );
}

/** Whether the list stays, although it is not of this moment or of this question: the next attempt comes by itself. */
function staysOutdated({ page, isAnswered, problem }: ShownChanges): boolean {
  if (page === undefined || problem === undefined) return false;
  return isAnswered || (problem.retryAt !== undefined && page.items.length > 0);
}

/** Said beside a list that stands: it is true, and not of this moment. */
function Outdated({ shown: { problem, knownAt, retry } }: { readonly shown: ShownChanges }) {
  const { text, clock } = useLanguage();
  if (problem === undefined) return null;
  return (
    <p class="pill outdated" part="outdated">
      <span>
        {text(problem.type)} {text('notUpdated', { time: clock(knownAt) })}
      </span>
      <button type="button" class="link" part="link" onClick={retry}>
        {text('retry')}
      </button>
    </p>
  );
}

function titleOf({ entity, entityId }: DocumentId, { page }: ShownChanges, type: string): string {
  const named = page?.items.find((item) => item.entity === entity && item.entityId === entityId);
  return documentTitle(type, entityId, named?.name);
}

/** The shape of what is to come. */
function Skeleton() {
  return (
    <div class="skeleton">
      <p class="visually-hidden" role="status">
        {useLanguage().text('loading')}
      </p>
      {[0, 1, 2, 3].map((line) => (
        <div key={line} class="skeleton-line" aria-hidden="true">
          <span />
          <span />
        </div>
      ))}
    </div>
  );
}
