import { Marked } from 'marked';
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
  const ids = new Map<string, number>();
  const marked = new Marked({
    gfm: true,
    renderer: {
      html: ({ text }) => escapeHtml(text),
      heading({ tokens, depth, text }) {
        const plain = text.replace(/[`*]/g, '');
        if (title === '') title = plain;
        const slug = slugOf(plain);
        const times = ids.get(slug) ?? 0;
        ids.set(slug, times + 1);
        const id = times === 0 ? slug : `${slug}-${times}`;
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
      table(token) {
        const row = (cells: typeof token.header, tag: string) =>
          `<tr>${cells.map((cell) => `<${tag}>${this.parser.parseInline(cell.tokens)}</${tag}>`).join('')}</tr>`;
        const body = token.rows.map((cells) => row(cells, 'td')).join('\n');
        return `<div class="table"><table><thead>${row(token.header, 'th')}</thead><tbody>${body}</tbody></table></div>\n`;
      },
    },
  });
  const html = marked.parse(markdown, { async: false });
  return { title, html };
}

/** The id of a heading as code hosts make it, so that one link works in both places. */
function slugOf(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');
}
