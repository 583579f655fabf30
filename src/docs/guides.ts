import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderGuide } from './render-guide.ts';

export interface Guide {
  /** The path of its file without `.md`: `operations`, `decisions/0001-house-and-stack`. */
  readonly name: string;
  readonly title: string;
  /** HTML of the whole guide. */
  readonly html: string;
}

/** These come first, in this order, each with the other guides of its folder. The rest follow by name. */
const firstGuides = [
  'getting-started',
  'concepts',
  'recording/README',
  'query-language',
  'history-reads',
  'pagination',
  'console',
  'api',
  'operations',
  'upgrading',
];

/** The guides of the folder `docs`, by name. Each is rendered when it is first asked for. */
export class Guides {
  readonly #folder: string;
  readonly #basePath: string;
  readonly #names: ReadonlySet<string>;
  readonly #images: ReadonlySet<string>;
  readonly #rendered = new Map<string, Guide>();

  /** `basePath` is the path of the public address, for links. */
  constructor(folder: string, basePath: string) {
    this.#folder = folder;
    this.#basePath = basePath;
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    this.#images = new Set(files.filter((file) => /\.(?:svg|png)$/.test(file)));
    this.#names = new Set(files.filter((file) => file.endsWith('.md')).map((file) => file.slice(0, -'.md'.length)));
  }

  /** Undefined where there is no such guide. */
  find(name: string): Guide | undefined {
    if (!this.#names.has(name)) return undefined;
    const known = this.#rendered.get(name);
    if (known !== undefined) return known;
    const markdown = readFileSync(join(this.#folder, `${name}.md`), 'utf8');
    const guide = { name, ...renderGuide(markdown, (href) => this.#linkFrom(name, href)) };
    this.#rendered.set(name, guide);
    return guide;
  }

  /** The names in two groups: for users and operators, and the records of decisions. */
  list(): { guides: string[]; records: string[] } {
    const { guides = [], records = [] } = Object.groupBy([...this.#names].sort(byPlace), (name) =>
      name.startsWith('decisions/') ? 'records' : 'guides',
    );
    return { guides, records };
  }

  /** Where a link of a guide leads on the site; undefined for a file that is neither a guide nor an image. */
  #linkFrom(name: string, href: string): string | undefined {
    if (/^(?:https?:|mailto:|#)/.test(href)) return href;
    const { pathname, hash, host } = new URL(href, `http://guides/${name}.md`);
    const file = decodeURIComponent(pathname.slice(1));
    const target = file.replace(/\.md$/, '');
    if (host !== 'guides' || !(this.#names.has(target) || this.#images.has(file))) return undefined;
    return `${this.#basePath}/docs/guides/${target}${hash}`;
  }
}

function byPlace(one: string, other: string): number {
  const place = (name: string) => {
    const found = firstGuides.findIndex(
      (first) => name === first || name.startsWith(`${first.replace(/\/README$/, '')}/`),
    );
    return found === -1 ? firstGuides.length : found;
  };
  // The page that a folder begins with stands before its others.
  const withoutReadme = (name: string) => name.replace(/README$/, '');
  return place(one) - place(other) || (withoutReadme(one) < withoutReadme(other) ? -1 : 1);
}
