import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

export interface Page {
  readonly html: string;
  /** Differs between builds. */
  readonly version: string;
}

const base = '<base href="/console/">';

/** The page of the console's build, with the path of the public address. */
export class ConsolePage {
  readonly #file: string;
  readonly #basePath: string;
  readonly #signsInPeople: boolean;
  #known: { stamp: string; page: Page } | undefined;

  constructor(folder: string, basePath: string, signsInPeople = false) {
    this.#file = join(folder, 'index.html');
    this.#basePath = basePath;
    this.#signsInPeople = signsInPeople;
  }

  /** Undefined if it was not built. Reread after changes. Throws if it cannot be read. */
  read(): Page | undefined {
    const status = statSync(this.#file, { throwIfNoEntry: false });
    if (status === undefined) return undefined;
    const stamp = `${status.mtimeMs} ${status.size} ${status.ino}`;
    if (this.#known?.stamp !== stamp) this.#known = { stamp, page: this.#render(readFileSync(this.#file, 'utf8')) };
    return this.#known.page;
  }

  /** Also undefined while the page cannot be read, so that calls of open pages do not fail. */
  get version(): string | undefined {
    try {
      return this.read()?.version;
    } catch {
      return undefined;
    }
  }

  #render(built: string): Page {
    if (!built.includes(base)) throw new Error(`${this.#file} has no ${base}`);
    const version = createHash('sha256').update(built).digest('hex').slice(0, 16);
    const head = `<base href="${this.#basePath}/console/"><meta name="${versionHeader}" content="${version}">`;
    const people = this.#signsInPeople ? '<meta name="annals-people" content="sign-in">' : '';
    return { version, html: built.replace(base, () => head + people) };
  }
}

/** The name of a header, and of a meta element of the page: if they differ, the page is older than the service. */
export const versionHeader = 'annals-console-version';
