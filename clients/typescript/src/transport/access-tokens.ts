import { orAborted } from './waiting.ts';

/** Where the access tokens of requests come from. */
export interface TokenProvider {
  /** A token that is valid now. */
  get(signal: AbortSignal | undefined): Promise<string>;
  /** Takes back a token that the service refused. Returns whether `get` then makes another one. */
  forget(text: string | undefined): boolean;
}

/** Tokens that the caller fetches and renews. */
export function givenTokens(token: () => string | Promise<string>): TokenProvider {
  return { get: async () => await token(), forget: () => false };
}

export interface AccessToken {
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** A token is renewed when a tenth of its life is left, or as many milliseconds where these are fewer. */
const shareOfLife = 0.1;
const defaultMaxMargin = 60_000;

/** The access token of a client: fetched once for all calls that wait, and renewed before it ends. */
export class AccessTokens implements TokenProvider {
  readonly #fetchToken: () => Promise<AccessToken>;
  readonly #maxMargin: number;
  #current: (AccessToken & { readonly renewAt: number }) | undefined;
  #renewal: Promise<string> | undefined;

  constructor(fetchToken: () => Promise<AccessToken>, { maxMargin = defaultMaxMargin } = {}) {
    this.#fetchToken = fetchToken;
    this.#maxMargin = maxMargin;
  }

  /** A token that is valid now. While a renewal fails, the old token serves until it ends. */
  async get(signal: AbortSignal | undefined): Promise<string> {
    const current = this.#current;
    if (current !== undefined && Date.now() < current.renewAt) return current.text;
    this.#renewal ??= this.#renew();
    // Each caller that waits gets the error. Where all of them are aborted nobody does.
    this.#renewal.catch(() => {});
    try {
      return await orAborted(this.#renewal, signal);
    } catch (error) {
      if (signal?.aborted !== true && current !== undefined && Date.now() < current.expiresAt) return current.text;
      throw error;
    }
  }

  /** The service refused this token. A newer one stays. */
  forget(text: string | undefined): boolean {
    if (this.#current?.text === text) this.#current = undefined;
    return true;
  }

  async #renew(): Promise<string> {
    try {
      const token = await this.#fetchToken();
      const margin = Math.min(this.#maxMargin, shareOfLife * (token.expiresAt - Date.now()));
      this.#current = { ...token, renewAt: token.expiresAt - margin };
      return token.text;
    } finally {
      this.#renewal = undefined;
    }
  }
}
