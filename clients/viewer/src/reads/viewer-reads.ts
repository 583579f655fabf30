import { type ExactChangeEntry, exactHistory } from '../../../typescript/src/json/exact-answers.ts';
import type { HistoryAnswer } from '../../../typescript/src/pages/history-page.ts';
import { AccessTokens } from '../../../typescript/src/transport/access-tokens.ts';
import { path } from '../../../typescript/src/transport/request.ts';
import { Transport } from '../../../typescript/src/transport/transport.ts';
import type { ViewerToken } from '../history-element.ts';
import { NoTokenError } from './no-token-error.ts';

/** A change; a token may hide who made it. */
export type Change = Omit<ExactChangeEntry, 'actor'> & { readonly actor?: string };
export type ChangesPage = HistoryAnswer<Change>;

export interface ReadsOptions {
  readonly baseUrl: string;
  readonly tenant: string;
  readonly getToken: () => ViewerToken | Promise<ViewerToken>;
}

/** Bytes of a value beyond which the list has its beginning alone. */
const valueLimit = 8_000;

/** The reads of a viewer token. They throw the client's ApiError, NoTokenError, or the reason of the signal. */
export interface ViewerReads {
  changes(asked: { q: string; page: number; size: number }, signal: AbortSignal): Promise<ChangesPage>;
  /** A change with all of its values. */
  change(ref: string, signal: AbortSignal): Promise<Change>;
  /** The values of a field that most changes of a query have. */
  values(field: 'entity' | 'actor', q: string, signal: AbortSignal): Promise<readonly string[]>;
  /** Goes on whatever else is read, until the end. */
  csv(q: string): Promise<Blob>;
  /** No token is asked for any more, and no file fetched. */
  end(): void;
}

export function createReads({ baseUrl, tenant, getToken }: ReadsOptions): ViewerReads {
  const tokens = createTokens(getToken);
  const files = new AbortController();
  const transport = new Transport({
    baseUrl: baseUrl.replace(/\/+$/, ''),
    tokens,
    timeout: 60_000,
    // What passes in a moment the reader need not know. What takes longer they are told.
    maxRetries: 1,
    maxRetryDelay: 2_000,
    fetch: (input, init) =>
      fetch(input, { ...init, credentials: 'omit', referrerPolicy: 'no-referrer', cache: 'no-store' }),
    pause: () => new Promise((resolve) => setTimeout(resolve)),
  });
  const send = async (
    operation: string,
    query: Record<string, string | number>,
    signal: AbortSignal,
    accept = 'application/json',
  ) =>
    await transport.send(
      { method: 'GET', path: path`/viewer/${tenant}/${operation}`, query, headers: { accept } },
      { signal },
    );
  return {
    async changes(asked, signal) {
      const { text } = await send('changes', { ...asked, ref: 'true', valueLimit }, signal);
      return await transport.read(exactHistory.page(text), { signal });
    },
    async change(ref, signal) {
      const { text } = await send('entries', { ref }, signal);
      return await transport.read(exactHistory.entry(text), { signal });
    },
    async values(field, q, signal) {
      const { text } = await send('facets', { q, field, size: 100 }, signal);
      const { values }: { values: readonly { value: string }[] } = JSON.parse(text);
      return values.map(({ value }) => value);
    },
    async csv(q) {
      const { text } = await send('changes', { q }, files.signal, 'text/csv');
      // Spreadsheets take a file without this mark for one of another time.
      return new Blob(['\ufeff', text], { type: 'text/csv;charset=utf-8' });
    },
    end() {
      tokens.end();
      files.abort();
    },
  };
}

/** Fetched once for all calls that wait, at nine tenths of its life, and when the service refuses it. */
function createTokens(getToken: ReadsOptions['getToken']): AccessTokens & { end(): void } {
  let renewal: ReturnType<typeof setTimeout> | undefined;
  let isEnded = false;
  const tokens = new AccessTokens(
    async () => {
      clearTimeout(renewal);
      const askedAt = Date.now();
      const { token, expiresIn } = await askFor(getToken);
      // The page may have gone on while its server was asked.
      if (isEnded) throw new NoTokenError('The history is not shown any more.');
      renewal = setTimeout(
        () => {
          // Nobody reads a page that is hidden: its next call asks for the token.
          if (globalThis.document?.visibilityState === 'visible') tokens.get(undefined).catch(() => {});
        },
        Math.min(Math.max(0.9 * expiresIn * 1_000, minTimer), maxTimer),
      );
      return { text: token, expiresAt: askedAt + expiresIn * 1_000 };
    },
    { maxMargin: Number.POSITIVE_INFINITY },
  );
  return Object.assign(tokens, {
    end() {
      isEnded = true;
      clearTimeout(renewal);
    },
  });
}

/** A host that hands over the rest of a token's life must not be asked without a pause. */
const minTimer = 1_000;

/** Browsers take a longer time for none. */
const maxTimer = 2_147_483_647;

async function askFor(getToken: ReadsOptions['getToken']): Promise<ViewerToken> {
  let answer: Partial<ViewerToken> | undefined;
  try {
    answer = await getToken();
  } catch (cause) {
    throw new NoTokenError('getToken() failed.', { cause });
  }
  const { token, expiresIn } = answer ?? {};
  if (typeof token === 'string' && token !== '' && typeof expiresIn === 'number' && expiresIn > 0)
    return { token, expiresIn };
  throw new NoTokenError('getToken() must resolve to { token, expiresIn }.');
}
