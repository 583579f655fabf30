/** The words of a text, in small letters. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** Whether each word of a text begins one of the words of a name. */
export function hasWords(name: string, text: string): boolean {
  const words = wordsOf(name);
  return wordsOf(text).every((wanted) => words.some((word) => word.startsWith(wanted)));
}

/** The regular expression for names in which a text begins a word, whatever the case. */
export function wordPattern(text: string): string {
  return `(?i)(^|[^\\p{L}\\p{N}])${text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}`;
}
