/** Of texts by language that of the reader, the English one, or the first. */
export function textFor(texts: Readonly<Record<string, string>> | undefined): string | undefined {
  if (texts === undefined) return undefined;
  const { language } = navigator;
  return texts[language] ?? texts[language.split('-')[0] ?? ''] ?? texts.en ?? Object.values(texts)[0];
}
