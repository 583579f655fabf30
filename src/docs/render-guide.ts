import { Marked } from 'marked';
import { plainText, slugs } from './heading-ids.ts';
import { escapeHtml } from './page.ts';

/**
 * Renders Markdown as HTML. Raw HTML in it is shown as text. `linkTo` says where a link or an image leads; what leads
 * nowhere is shown as its text.
 */
export function renderGuide(
  markdown: string,
  linkTo: (href: string) => string | undefined,
): { title: string; html: string } {
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
      // The keyboard scrolls code and tables that are wider than the page.
      code: ({ text }) => `<pre tabindex="0"><code>${escapeHtml(text)}</code></pre>\n`,
      table(token) {
        const row = (cells: typeof token.header, tag: 'th' | 'td') =>
          `<tr>${cells.map((cell) => cellOf(this.parser.parseInline(cell.tokens), tag)).join('')}</tr>`;
        // Markdown has no table without a head.
        const head = token.header.every(({ text }) => text === '') ? '' : `<thead>${row(token.header, 'th')}</thead>`;
        const body = token.rows.map((cells) => row(cells, 'td')).join('\n');
        return `<div class="table" tabindex="0"><table>${head}<tbody>${body}</tbody></table></div>\n`;
      },
    },
  });
  const html = marked.parse(markdown, { async: false });
  return { title, html };
}

/** A heading without words is no heading. */
function cellOf(html: string, tag: 'th' | 'td'): string {
  const name = html === '' ? 'td' : tag;
  return `<${name}>${html}</${name}>`;
}
