import { render } from 'preact';
import type {
  AnnalsHistoryElement,
  HistoryMessages,
  HistoryRange,
  OpenedDocument,
  ViewerToken,
} from './history-element.ts';
import { createReads, type ViewerReads } from './reads/viewer-reads.ts';
import { isRange } from './search/search.ts';
import styles from './styles.css?inline';
import { type Language, languageOf } from './texts/language.ts';
import { History } from './view/history.tsx';
import { LanguageContext } from './view/language-context.ts';

const tagName = 'annals-history';
/** The name of the property of each attribute. */
const properties = {
  'base-url': 'baseUrl',
  tenant: 'tenant',
  'time-zone': 'timeZone',
  range: 'range',
  'page-size': 'pageSize',
  csv: 'csv',
  messages: 'messages',
  lang: undefined,
} as const;

/** Registers `<annals-history>`, unless another copy of this file has done so. */
export function defineHistory(): void {
  if (customElements.get(tagName) !== undefined) return;
  // A style element would need the host's policy to allow it.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(styles);

  class AnnalsHistory extends HTMLElement implements AnnalsHistoryElement {
    static readonly observedAttributes = Object.keys(properties);
    readonly #root = this.attachShadow({ mode: 'open' });
    #getToken: AnnalsHistoryElement['getToken'];
    #token: ViewerToken | undefined;
    #messages: HistoryMessages | undefined;
    #reads: { readonly of: string; readonly reads: ViewerReads } | undefined;
    #language: { readonly of: readonly unknown[]; readonly language: Language } | undefined;
    #round = 0;
    #isPlanned = false;

    constructor() {
      super();
      this.#root.adoptedStyleSheets = [sheet];
    }

    get getToken() {
      return this.#getToken;
    }

    set getToken(getToken) {
      this.#getToken = getToken;
      this.#plan();
    }

    get token() {
      return this.#token;
    }

    set token(token) {
      this.#token = token;
      this.#plan();
    }

    get messages() {
      return this.#messages ?? this.#writtenMessages();
    }

    set messages(messages) {
      this.#messages = messages;
      this.#plan();
    }

    get baseUrl() {
      return this.getAttribute('base-url') ?? '';
    }

    set baseUrl(baseUrl) {
      this.setAttribute('base-url', baseUrl);
    }

    get tenant() {
      return this.getAttribute('tenant') ?? '';
    }

    set tenant(tenant) {
      this.setAttribute('tenant', tenant);
    }

    get timeZone() {
      return this.getAttribute('time-zone') ?? '';
    }

    set timeZone(timeZone) {
      this.setAttribute('time-zone', timeZone);
    }

    get range(): HistoryRange {
      const range = this.getAttribute('range');
      return isRange(range) ? range : '90d';
    }

    set range(range) {
      this.setAttribute('range', range);
    }

    get pageSize() {
      const size = Number(this.getAttribute('page-size') ?? 20);
      return Number.isInteger(size) && size >= 1 && size <= 100 ? size : 20;
    }

    set pageSize(size) {
      this.setAttribute('page-size', String(size));
    }

    get csv() {
      return this.hasAttribute('csv');
    }

    set csv(csv) {
      this.toggleAttribute('csv', csv);
    }

    refresh(): void {
      this.#round += 1;
      this.#plan();
    }

    connectedCallback(): void {
      for (const name of ['getToken', 'token', ...Object.values(properties)] as const) this.#takeOver(name);
      this.#plan();
    }

    disconnectedCallback(): void {
      this.#endReads();
      render(null, this.#root);
    }

    attributeChangedCallback(): void {
      this.#plan();
    }

    /** A property that was set before the element was known hides the accessor of its name. */
    #takeOver(name: keyof AnnalsHistoryElement | undefined): void {
      if (name === undefined || !Object.hasOwn(this, name)) return;
      const value: unknown = Reflect.get(this, name);
      Reflect.deleteProperty(this, name);
      Reflect.set(this, name, value);
    }

    /** Draws once for all that changes at a time. */
    #plan(): void {
      if (this.#isPlanned || !this.isConnected) return;
      this.#isPlanned = true;
      queueMicrotask(() => {
        this.#isPlanned = false;
        if (this.isConnected) this.#draw();
      });
    }

    #draw(): void {
      const { baseUrl, tenant } = this;
      render(
        <LanguageContext.Provider value={this.#languageNow()}>
          <History
            key={`${baseUrl} ${tenant}`}
            reads={this.#readsNow()}
            range={this.range}
            pageSize={this.pageSize}
            csv={this.csv}
            round={this.#round}
            onProblem={({ type, error }) => this.#dispatch('annals-error', { type, error })}
            onOpen={(document) => this.#dispatch('annals-document', document satisfies OpenedDocument)}
          />
        </LanguageContext.Provider>,
        this.#root,
      );
    }

    /** Another function for tokens is taken for the next one: frameworks make a new function each time they draw. */
    #readsNow(): ViewerReads | undefined {
      const { baseUrl, tenant } = this;
      if (this.#getToken === undefined && this.#token === undefined) return undefined;
      const of = `${baseUrl} ${tenant}`;
      if (this.#reads?.of !== of) {
        this.#endReads();
        let first = this.#token;
        const getToken = async () => {
          const given = first;
          first = undefined;
          if (given !== undefined) return given;
          if (this.#getToken === undefined) throw new TypeError('getToken is not set.');
          return await this.#getToken();
        };
        this.#reads = { of, reads: createReads({ baseUrl, tenant, getToken }) };
      }
      return this.#reads.reads;
    }

    #endReads(): void {
      this.#reads?.reads.end();
      this.#reads = undefined;
    }

    #languageNow(): Language {
      const tag = readersForm(this.closest<HTMLElement>('[lang]:not([lang=""])')?.lang ?? navigator.language);
      const of = [tag, this.timeZone, this.#messages ?? this.getAttribute('messages')];
      if (this.#language === undefined || of.some((part, index) => part !== this.#language?.of[index])) {
        this.#language = { of, language: languageOf(tag, this.timeZone, this.messages) };
      }
      return this.#language.language;
    }

    #writtenMessages(): HistoryMessages | undefined {
      const written = this.getAttribute('messages');
      if (written === null) return undefined;
      try {
        const messages: unknown = JSON.parse(written);
        if (typeof messages === 'object' && messages !== null) return messages;
      } catch {
        // Told below: the history is shown without these words.
      }
      console.warn('<annals-history>: the attribute messages is no JSON object.');
      return undefined;
    }

    /** Returns whether nobody prevented the default. */
    #dispatch(type: string, detail: unknown): boolean {
      return this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true, composed: true, cancelable: true }));
    }
  }

  customElements.define(tagName, AnnalsHistory);
}

/** A page in English says `en`. Its reader may write dates as in Great Britain. */
function readersForm(tag: string): string {
  return navigator.languages.find((own) => own.toLowerCase().startsWith(`${tag.toLowerCase()}-`)) ?? tag;
}
