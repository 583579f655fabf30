import type { Glob, List, Text } from './ast.ts';

/** Whether a text matches a matcher: case-sensitive, in time linear in the text (contract 4). */
export function compileMatcher(matcher: Text | Glob | List): (text: string) => boolean {
  switch (matcher.kind) {
    case 'text':
      return (text) => text === matcher.text;
    case 'glob':
      return (text) => matchesGlob(matcher.parts, text);
    case 'list': {
      const texts = new Set(matcher.items.filter((item) => item.kind === 'text').map((item) => item.text));
      const globs = matcher.items.filter((item) => item.kind === 'glob');
      return (text) => texts.has(text) || globs.some((glob) => matchesGlob(glob.parts, text));
    }
  }
}

/**
 * The first and the last part must stand at the ends. Each part between is taken at its first occurrence, which leaves
 * the most room for the parts after it. So no part is ever tried twice.
 */
function matchesGlob(parts: readonly string[], text: string): boolean {
  const first = parts[0] ?? '';
  const last = parts.at(-1) ?? '';
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let offset = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, offset);
    if (found < 0 || found + part.length > end) return false;
    offset = found + part.length;
  }
  return true;
}

/** The LIKE pattern for a glob, with a backslash before each character that has a meaning in LIKE. */
export function likePattern({ parts }: Pick<Glob, 'parts'>): string {
  return parts.map(escapeLike).join('%');
}

function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&');
}
