// The types of the package. They stand alone: the build copies this file as it is.

/** What `POST /changelog/{tenant}/viewer-tokens` answers. */
export interface ViewerToken {
  readonly token: string;
  /** Seconds. */
  readonly expiresIn: number;
}

/** How far back the list looks at first. */
export type HistoryRange = '7d' | '30d' | '90d' | '1y' | 'all';

/** The host's words for what the history names. Whatever has no word here is shown as it is, made readable. */
export interface HistoryMessages {
  /** By entity type: `{ order: 'Order' }`. */
  readonly entities?: Readonly<Record<string, string>>;
  /**
   * By path, or by entity type and path: `{ status: 'Status', 'items.*.quantity': 'Quantity', 'customer:status':
   * 'Account' }`. A star is any one key or place of an array, and `{n}` in a word is the number of that place, from 1.
   */
  readonly fields?: Readonly<Record<string, string>>;
  /** By path as in `fields`, then by the value: `{ status: { PAID: 'paid', SHIPPED: 'on its way' } }`. */
  readonly values?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** By actor: `{ system: 'Our shop' }`. */
  readonly actors?: Readonly<Record<string, string>>;
  /** The component's own texts by their names, of which the guide has a list. */
  readonly texts?: Readonly<Record<string, string>>;
}

/**
 * `<annals-history>`: the changes that a viewer token shows. Each property but the first three is an attribute as well.
 */
export interface AnnalsHistoryElement extends HTMLElement {
  /** Asks the host's own server for a viewer token. Called when one is needed, once for all calls that wait for it. */
  getToken: (() => ViewerToken | Promise<ViewerToken>) | undefined;
  /** The first token, where the page has it from its server: the list then waits for no call of `getToken`. */
  token: ViewerToken | undefined;
  /** As an attribute: JSON. */
  messages: HistoryMessages | undefined;
  /** The address of Annals. Attribute: `base-url`. */
  baseUrl: string;
  tenant: string;
  /** An IANA time zone; left out: that of the browser. Attribute: `time-zone`. */
  timeZone: string;
  /** Left out: `90d`. */
  range: HistoryRange;
  /** Changes of a page: 1 to 100; left out: 20. Attribute: `page-size`. */
  pageSize: number;
  /** Offers the list as CSV. The token must allow it with `export`. */
  csv: boolean;
  /** Reloads the list. */
  refresh(): void;
}

/** Of the event `annals-document`: somebody opens a document. `preventDefault()` leaves it to the host's page. */
export interface OpenedDocument {
  readonly entity: string;
  readonly entityId: string;
}

/** Of the event `annals-error`: what the reader is told in words. */
export interface HistoryProblem {
  readonly type: 'busy' | 'away' | 'refused' | 'no-token' | 'failed';
  readonly error: unknown;
}

declare global {
  interface HTMLElementTagNameMap {
    'annals-history': AnnalsHistoryElement;
  }
  interface HTMLElementEventMap {
    'annals-document': CustomEvent<OpenedDocument>;
    'annals-error': CustomEvent<HistoryProblem>;
  }
}
