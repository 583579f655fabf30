/** The text of a heading without the marks of Markdown. */
export function plainText(heading: string): string {
  return heading.replace(/[`*]/g, '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
}

/** Makes the ids of a page's headings as code hosts make them, so that one link works in both places. Equal headings get ids of their own. */
export function slugs(): (heading: string) => string {
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
