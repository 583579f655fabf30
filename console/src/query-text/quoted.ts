/** A text in quotes: every character of it stands for itself. */
export function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** The text that stands in quotes, whose end may still be missing. */
export function unquoted(written: string): string {
  const inner = written.slice(1, written.length > 1 && written.endsWith('"') ? -1 : undefined);
  return inner.replace(/\\(["\\])/g, '$1');
}
