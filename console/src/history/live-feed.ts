import type { FeedChange } from '@annals/client';
import { computed, effect, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { annals } from '../api/annals.ts';
import { lostAt } from '../api/connection.ts';
import type { EntryPage } from '../api/history-reads.ts';
import { allows, historyAbilities } from '../api/session.ts';
import { storedChoice } from '../components/stored-choice.ts';
import { hasFromBound } from '../query-text/edit-query.ts';
import { queryFaultOf } from './query-faults.ts';

/** Whether a change that is recorded now would be announced. Times are milliseconds since 1970. */
type LiveState =
  | { readonly name: 'connecting' }
  | {
      readonly name: 'live';
      /** When it had read what came while the connection was lost. */
      readonly caughtUpAt: number | undefined;
    }
  | { readonly name: 'lost'; readonly at: number }
  | { readonly name: 'catching-up' }
  | { readonly name: 'restored' }
  | { readonly name: 'refused'; readonly error: unknown };

export interface LiveView {
  readonly state: LiveState;
  /** Changes of the feed that the page does not show, oldest first. */
  readonly changes: readonly NewChange[];
  /** When the page was read. */
  readonly readAt: number | undefined;
  /** The feed began only then, after the page was read: what came between is not known. */
  readonly beganLateAt: number | undefined;
}

/** Milliseconds that a page waits for the feed to begin. */
const maxWait = 2_000;

const unbegun: LiveView = { state: { name: 'connecting' }, changes: [], readAt: undefined, beganLateAt: undefined };

/** New changes of a query since the page was read. Resumes by its cursor after a lost connection or a hidden tab. */
class LiveFeed {
  readonly view = signal<LiveView>(unbegun);
  readonly #q: string;
  readonly #hasFrom: boolean;
  #cursor: string | undefined;
  #begun = Promise.withResolvers<void>();
  #connection: AbortController | undefined;
  #isWanted = false;
  /** Refs of what the page shows. */
  #known: ReadonlySet<string> = new Set();

  constructor(q: string) {
    this.#q = q;
    this.#hasFrom = hasFromBound(q);
  }

  connect(): void {
    this.#isWanted = true;
    if (this.#connection !== undefined || this.#isOver()) return;
    const connection = new AbortController();
    this.#connection = connection;
    this.#set({ state: { name: this.#cursor === undefined ? 'connecting' : 'catching-up' } });
    this.#follow(connection).catch((error: unknown) => {
      if (this.#connection === connection) this.#end({ name: 'refused', error });
    });
  }

  /** Keeps the cursor. A feed that has not begun begins first. */
  disconnect(): void {
    this.#isWanted = false;
    if (this.#cursor === undefined) return;
    this.#connection?.abort();
    this.#connection = undefined;
  }

  /** Ends the pause of a feed that has lost its connection. */
  resume(): void {
    if (this.#connection === undefined) return;
    this.#connection.abort();
    this.#connection = undefined;
    this.connect();
  }

  close(): void {
    this.#connection?.abort();
    this.#connection = undefined;
    this.#begun.resolve();
  }

  /** Reads the page after the feed has started, so that no change is in neither. Throws the error of a wrong query. */
  async read(read: () => Promise<EntryPage>, { isNewest }: { readonly isNewest: boolean }): Promise<EntryPage> {
    if (this.#isOver()) {
      this.#cursor = undefined;
      this.#begun = Promise.withResolvers();
      this.view.value = unbegun;
      this.connect();
    }
    await Promise.race([this.#begun.promise, new Promise((resolve) => setTimeout(resolve, maxWait))]);
    const { state } = this.view.value;
    // The list would be refused as well.
    if (state.name === 'refused' && queryFaultOf(state.error, this.#q) !== undefined) throw state.error;
    const before = this.view.value.changes.length;
    const readAt = Date.now();
    const page = await read();
    if (isNewest || this.view.value.readAt === undefined) {
      this.#known = new Set(page.items.map(({ ref }) => ref));
      this.#set({ changes: withPage(this.view.value.changes, before, this.#known), readAt, beganLateAt: undefined });
    }
    return page;
  }

  /** Whether it resumes only once the page is read again. */
  #isOver(): boolean {
    const { state, changes } = this.view.value;
    return state.name === 'restored' || state.name === 'refused' || changes.length >= maxNews;
  }

  async #follow(connection: AbortController): Promise<void> {
    const isOurs = () => this.#connection === connection;
    const changes = annals().history.tail(
      {
        q: this.#q,
        after: this.#cursor,
        onCursor: (cursor) => isOurs() && this.#reach(cursor),
        onCaughtUp: () => isOurs() && this.#becomeLive(),
        onLost: () => isOurs() && this.#becomeLost(),
        onReset: () => isOurs() && this.#end({ name: 'restored' }),
      },
      { signal: connection.signal },
    );
    for await (const change of changes) {
      if (!isOurs()) return;
      this.#add(change);
    }
  }

  #reach(cursor: string): void {
    const isFirst = this.#cursor === undefined;
    this.#cursor = cursor;
    if (this.view.value.state.name === 'lost') this.#set({ state: { name: 'catching-up' } });
    if (!isFirst) return;
    this.#begun.resolve();
    if (this.view.value.readAt !== undefined) this.#set({ beganLateAt: Date.now() });
    if (!this.#isWanted) this.disconnect();
  }

  #add(change: NewChange): void {
    const time = { hasFrom: this.#hasFrom, now: Date.now() };
    this.#set({ changes: withChange(this.view.value.changes, change, this.#known, time) });
    if (this.#isOver()) this.disconnect();
  }

  #becomeLive(): void {
    const { name } = this.view.value.state;
    if (name !== 'live')
      this.#set({ state: { name: 'live', caughtUpAt: name === 'connecting' ? undefined : Date.now() } });
  }

  #becomeLost(): void {
    const { state } = this.view.value;
    this.#begun.resolve();
    this.#set({ state: { name: 'lost', at: state.name === 'lost' ? state.at : Date.now() } });
  }

  #end(state: LiveState): void {
    this.#connection?.abort();
    this.#connection = undefined;
    this.#begun.resolve();
    this.#set({ state });
  }

  #set(part: Partial<LiveView>): void {
    this.view.value = { ...this.view.value, ...part };
  }
}

/** Follows a query while the switch is on and the tab is visible: a browser has few connections. */
export function useLive(q: string): LiveFeed {
  const feed = useMemo(() => new LiveFeed(q), [q]);
  const isOn = isLive.value;
  useEffect(() => {
    if (!isOn) return;
    feed.connect();
    if (document.visibilityState === 'hidden') feed.disconnect();
    const onVisibility = () => (document.visibilityState === 'visible' ? feed.connect() : feed.disconnect());
    document.addEventListener('visibilitychange', onVisibility);
    // Resumes at once where the service is back, whatever the pause of the feed.
    let wasLost = false;
    const stop = effect(() => {
      const isLost = lostAt.value !== undefined;
      if (wasLost && !isLost) feed.resume();
      wasLost = isLost;
    });
    return () => {
      stop();
      document.removeEventListener('visibilitychange', onVisibility);
      feed.disconnect();
    };
  }, [feed, isOn]);
  useEffect(() => () => feed.close(), [feed]);
  return feed;
}

/** Whether the history follows what is recorded. The choice of a reader stays. */
const live = storedChoice('annals.live', ['on', 'off']);
export const isLive = computed(() => live.value.value === 'on' && allows(historyAbilities.all));

export function turnLive(on: boolean): void {
  live.choose(on ? 'on' : 'off');
}

/** A change that was recorded since the page was read. */
export type NewChange = Pick<FeedChange, 'ref' | 'at' | 'type' | 'entity' | 'entityId' | 'actor'>;

/** New changes that are kept. With more, following stops until the page is read again. */
export const maxNews = 1_000;

/** Milliseconds that a query without a from-bound looks back, as the service has it. */
const defaultWindow = 30 * 86_400_000;

/** Adds a change of the feed, unless the page shows it (`known`), or the query would not by its time. */
function withChange(
  changes: readonly NewChange[],
  { ref, at, type, entity, entityId, actor }: NewChange,
  known: ReadonlySet<string>,
  { hasFrom, now }: { readonly hasFrom: boolean; readonly now: number },
): readonly NewChange[] {
  const isOutside = !hasFrom && Date.parse(at) < now - defaultWindow;
  if (isOutside || known.has(ref) || changes.some((change) => change.ref === ref)) return changes;
  // The rest of the change, such as its values, is let go.
  return [...changes, { ref, at, type, entity, entityId, actor }];
}

/**
 * What is still new after the page was read: the first `before` came before the request, and those in `known` are
 * shown.
 */
function withPage(changes: readonly NewChange[], before: number, known: ReadonlySet<string>): readonly NewChange[] {
  return changes.slice(before).filter(({ ref }) => !known.has(ref));
}
