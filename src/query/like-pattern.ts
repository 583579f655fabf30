import type { Glob } from './ast.ts';

/** The pattern that LIKE wants for a glob, with a backslash before what LIKE would take for more than itself. */
export function likePattern({ parts }: Pick<Glob, 'parts'>): string {
  return parts.map((part) => part.replaceAll(/[\\%_]/g, '\\$&')).join('%');
}
