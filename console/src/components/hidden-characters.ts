/** A part of a text: characters to show as they are, or one that would be invisible or would turn others around. */
export type TextPart =
  | { readonly hidden: false; readonly text: string }
  | { readonly hidden: true; readonly sign: string; readonly name: string };

/** Controls, format characters (bidirectional marks, zero-width ones, tags), separators, lone surrogates. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
const everyHidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * Splits a text at its hidden characters. Line ends and tabs are hidden too, unless `lines` keeps them.
 *
 * @example
 * splitHidden('a\u202eb'); // 'a', ⟨U+202E⟩, 'b'
 */
export function splitHidden(text: string, { lines = false }: { readonly lines?: boolean } = {}): TextPart[] {
  if (!hidden.test(text)) return [{ hidden: false, text }];
  const parts: TextPart[] = [];
  let written = 0;
  const keep = (end: number) => {
    if (end > written) parts.push({ hidden: false, text: text.slice(written, end) });
  };
  for (const { index, 0: character } of text.matchAll(everyHidden)) {
    if (lines && (character === '\n' || character === '\t')) continue;
    if (isPartOfEmoji(text, index, character)) continue;
    keep(index);
    const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    parts.push({ hidden: true, sign: signs[character] ?? `U+${code}`, name: `Character U+${code}` });
    written = index + character.length;
  }
  keep(text.length);
  return parts;
}

const signs: Readonly<Record<string, string>> = { '\n': '↵', '\t': '⇥', '\r': '␍' };

/** A zero-width joiner between two pictures joins them to one, as in 👩‍🚀. */
function isPartOfEmoji(text: string, index: number, character: string): boolean {
  return character === '\u200d' && /\p{Emoji}\ufe0f?$/u.test(text.slice(Math.max(0, index - 4), index));
}
