import { plainText, slugs } from './heading-ids.ts';

/** A part of a guide, from a heading to the next one. */
export interface Section {
  readonly heading: string;
  /** The id of the heading on its page. */
  readonly id: string;
  readonly text: string;
}

/** The sections of a guide in Markdown, for a search. The first one has the title. */
export function sectionsOf(markdown: string): Section[] {
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
