import { signal } from '@preact/signals';
import { annals } from '../../api/annals.ts';
import type { EntryPage } from '../../api/history-reads.ts';
import { hasFromBound } from '../../query-text/edit-query.ts';
import { queryFaultOf } from '../query-faults.ts';
import { maxNews, type NewChange, withChange, withPage } from './news.ts';

/** Whether the reader would be told of a change that is recorded now. Times are milliseconds since 1970. */
export type LiveState =
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
  /** What the feed has told and the page does not show, oldest first. */
  readonly changes: readonly NewChange[];
  /** When the page was read. */
  readonly readAt: number | undefined;
  /** The feed began only then, after the page was read: what came between is not known. */
  readonly beganLateAt: number | undefined;
}

/** Milliseconds that a page waits for the feed to begin. */
const maxWait = 2_000;

const unbegun: LiveView = { state: { name: 'connecting' }, changes: [], readAt: undefined, beganLateAt: undefined };

/**
 * What is recorded and matches a query from the moment on at which the page is read. It goes on by its cursor: after a lost connection,
 * and when it was turned off meanwhile, as in a tab that nobody sees.
 */
export class LiveFeed {
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

  close(): void {
    this.#connection?.abort();
    this.#connection = undefined;
    this.#begun.resolve();
  }

  /**
   * Reads the page after the feed has begun, so that every change is in one of them at least. A page that is not the newest one has
   * nothing of what is new. Throws what the feed answered to a wrong query.
   */
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

  /** Whether it goes on only when the page is read anew. */
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
