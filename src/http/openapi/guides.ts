import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadPart } from '../../core/package-folder.ts';

export interface Guide {
  /** The path of its file without `.md`: `operations`, `decisions/house`. */
  readonly name: string;
  readonly title: string;
  /** HTML of the whole guide. */
  readonly html: string;
}

/** Guides for one purpose, in the order of the list. */
export interface GuideGroup {
  readonly title: string;
  readonly guides: readonly GuideLink[];
}

interface GuideLink {
  readonly name: string;
  readonly title: string;
}

/** A section in the search index. */
interface SearchEntry extends Section {
  /** The address of the page. */
  readonly path: string;
  readonly title: string;
}

/** A name includes the other pages of its folder. */
const groups: readonly { readonly title: string; readonly names: readonly string[] }[] = [
  { title: 'Begin', names: ['getting-started', 'concepts', 'install'] },
  { title: 'Record changes', names: ['recording/README'] },
  {
    title: 'Read the history',
    names: [
      'console',
      'query-language',
      'history-reads',
      'saved-views',
      'access',
      'accesses',
      'erasure',
      'ai-tools',
      'viewer',
      'api',
      'python',
      'pagination',
      'compatibility',
    ],
  },
  { title: 'Follow the history', names: ['delivery/README'] },
  { title: 'Call models', names: ['openai', 'anthropic'] },
  {
    title: 'Run Annals',
    names: ['reference', 'operations', 'deploy', 'upgrading', 'metrics', 'traces', 'cluster', 'sign-in/README'],
  },
  { title: 'Look inside', names: ['architecture', 'proof'] },
];
const otherGuides = 'More';
export const recordsOfDecisions = 'Records of decisions';

/** The guides of the folder `docs`, by name, each rendered on first use. */
export class Guides {
  readonly #folder: string;
  readonly #basePath: string;
  readonly #names: ReadonlySet<string>;
  readonly #images: ReadonlySet<string>;
  readonly #rendered = new Map<string, Guide>();
  readonly #read = new Map<string, readonly Section[]>();

  /** `basePath` is the path of the public address, for links. */
  constructor(folder: string, basePath: string) {
    this.#folder = folder;
    this.#basePath = basePath;
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    this.#images = new Set(files.filter((file) => /\.(?:svg|png)$/.test(file)));
    this.#names = new Set(files.filter((file) => file.endsWith('.md')).map((file) => file.slice(0, -'.md'.length)));
  }

  /** Undefined if there is no such guide. */
  async find(name: string): Promise<Guide | undefined> {
    if (!this.#names.has(name)) return undefined;
    const known = this.#rendered.get(name);
    if (known !== undefined) return known;
    const markdown = readFileSync(join(this.#folder, `${name}.md`), 'utf8');
    const guide = { name, ...(await renderGuide(markdown, (href) => this.#linkFrom(name, href))) };
    this.#rendered.set(name, guide);
    return guide;
  }

  /** All guides by purpose; the records of decisions last. */
  groups(): readonly GuideGroup[] {
    const placed = [...this.#names].map((name) => ({ name, ...placeOf(name) }));
    const titles = [...groups.map(({ title }) => title), otherGuides, recordsOfDecisions];
    return titles.flatMap((title) => {
      const names = placed.filter(({ group }) => group === title).sort(byPlace);
      if (names.length === 0) return [];
      return { title, guides: names.map(({ name }) => ({ name, title: this.#sections(name)[0]?.heading ?? name })) };
    });
  }

  /** All sections of all guides, in the order of the groups. */
  searchEntries(): readonly SearchEntry[] {
    return this.groups().flatMap(({ guides }) =>
      guides.flatMap(({ name, title }) =>
        this.#sections(name).map((section) => ({ path: this.#pathOf(name), title, ...section })),
      ),
    );
  }

  #sections(name: string): readonly Section[] {
    const read = () => sectionsOf(readFileSync(join(this.#folder, `${name}.md`), 'utf8'));
    return this.#read.getOrInsertComputed(name, read);
  }

  #pathOf(name: string): string {
    return `${this.#basePath}/docs/guides/${name}`;
  }

  /** The target of a guide's link on the site; undefined for a file that is neither a guide nor an image. */
  #linkFrom(name: string, href: string): string | undefined {
    if (/^(?:https?:|mailto:|#)/.test(href)) return href;
    const { pathname, hash, host } = new URL(href, `http://guides/${name}.md`);
    const file = decodeURIComponent(pathname.slice(1));
    const target = file.replace(/\.md$/, '');
    if (host !== 'guides' || !(this.#names.has(target) || this.#images.has(file))) return undefined;
    return `${this.#pathOf(target)}${hash}`;
  }
}

function placeOf(name: string): { group: string; place: number } {
  if (name.startsWith('decisions/')) return { group: recordsOfDecisions, place: 0 };
  for (const { title, names } of groups) {
    const place = names.findIndex((first) => name === first || name.startsWith(`${first.replace(/\/README$/, '')}/`));
    if (place !== -1) return { group: title, place };
  }
  return { group: otherGuides, place: 0 };
}

function byPlace(a: { name: string; place: number }, b: { name: string; place: number }): number {
  // The README of a folder comes first.
  const withoutReadme = ({ name }: { name: string }) => name.replace(/README$/, '');
  return a.place - b.place || (withoutReadme(a) < withoutReadme(b) ? -1 : 1);
}

/** A part of a guide, from a heading to the next one. */
interface Section {
  readonly heading: string;
  /** The id of the heading on its page. */
  readonly id: string;
  readonly text: string;
}

/** The sections of a guide in Markdown. The first one has the title. */
function sectionsOf(markdown: string): Section[] {
  const idOf = slugs();
  const sections: { heading: string; id: string; lines: string[] }[] = [];
  let isCode = false;
  for (const line of markdown.split('\n')) {
    if (/^\s*```/.test(line)) isCode = !isCode;
    const [, heading] = isCode ? [] : (/^#{1,6} (.+)$/.exec(line) ?? []);
    if (heading === undefined) sections.at(-1)?.lines.push(line);
    else sections.push({ heading: plainText(heading), id: idOf(plainText(heading)), lines: [] });
  }
  return sections.map(({ heading, id, lines }) => ({ heading, id, text: textOf(lines.join('\n')) }));
}

/** The words of Markdown, without its marks. */
function textOf(markdown: string): string {
  return markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*|]|^[-\s|:]+$/gm, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

/** The text of a heading without the marks of Markdown. */
export function plainText(heading: string): string {
  return heading.replace(/[`*]/g, '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
}

/** Makes unique ids of a page's headings as code hosts do, so that links work in both places. */
function slugs(): (heading: string) => string {
  const ids = new Map<string, number>();
  return (heading) => {
    const slug = slugOf(heading);
    const times = ids.get(slug) ?? 0;
    ids.set(slug, times + 1);
    return times === 0 ? slug : `${slug}-${times}`;
  };
}

function slugOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
}

/** Renders Markdown as HTML, with raw HTML escaped. Links and images that `linkTo` does not map are shown as text. */
export async function renderGuide(
  markdown: string,
  linkTo: (href: string) => string | undefined,
): Promise<{ title: string; html: string }> {
  // Loaded on first use: most processes render no guide.
  const { Marked } = await loadPart(() => import('marked'));
  let title = '';
  const idOf = slugs();
  const marked = new Marked({
    gfm: true,
    renderer: {
      html: ({ text }) => escapeHtml(text),
      heading({ tokens, depth, text }) {
        const plain = plainText(text);
        if (title === '') title = plain;
        const id = idOf(plain);
        return `<h${depth} id="${escapeHtml(id)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        const target = linkTo(href);
        const text = this.parser.parseInline(tokens);
        return target === undefined ? text : `<a href="${escapeHtml(target)}">${text}</a>`;
      },
      image({ href, text }) {
        const source = linkTo(href);
        return source === undefined ? escapeHtml(text) : `<img src="${escapeHtml(source)}" alt="${escapeHtml(text)}">`;
      },
      // Focusable, so that the keyboard scrolls code and tables that are wider than the page.
      code: ({ text }) => `<pre tabindex="0"><code>${escapeHtml(text)}</code></pre>\n`,
      table(token) {
        const row = (cells: typeof token.header, tag: 'th' | 'td') =>
          `<tr>${cells.map((cell) => cellOf(this.parser.parseInline(cell.tokens), tag)).join('')}</tr>`;
        // Markdown requires a head, which may be empty.
        const head = token.header.every(({ text }) => text === '') ? '' : `<thead>${row(token.header, 'th')}</thead>`;
        const body = token.rows.map((cells) => row(cells, 'td')).join('\n');
        return `<div class="table" tabindex="0"><table>${head}<tbody>${body}</tbody></table></div>\n`;
      },
    },
  });
  const html = marked.parse(markdown, { async: false });
  return { title, html };
}

/** An empty heading cell is rendered as a data cell. */
function cellOf(html: string, tag: 'th' | 'td'): string {
  const name = html === '' ? 'td' : tag;
  return `<${name}>${html}</${name}>`;
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
