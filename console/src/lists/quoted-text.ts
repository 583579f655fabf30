/** A text as a value of the query language: every character stands for itself. */
export function quotedText(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
