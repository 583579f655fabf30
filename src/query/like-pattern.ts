import type { Glob } from './ast.ts';

/** The LIKE pattern for a glob, with a backslash before each character that has a meaning in LIKE. */
export function likePattern({ parts }: Pick<Glob, 'parts'>): string {
  return parts.map(escapeLike).join('%');
}

/** The text with a backslash before each character that has a meaning in LIKE. */
function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&');
}
