// The viewer takes this file as well: it imports nothing.

interface NameProps {
  readonly text: string;
  /** The element around it; left out: `span` where it has a class. */
  readonly as?: 'strong' | 'code' | 'div' | 'p' | 'h3' | 'span';
  readonly class?: string;
}

/** A text from data. Its direction stays inside, and invisible characters are shown as signs with their code. */
export function Name({ text, as, class: name }: NameProps) {
  const isolated = <bdi>{text === '' ? <span class="muted">(empty)</span> : <Text text={text} />}</bdi>;
  const Tag = as ?? (name === undefined ? undefined : 'span');
  return Tag === undefined ? isolated : <Tag class={name}>{isolated}</Tag>;
}

interface TextProps {
  readonly text: string;
  /** Whether line ends stay what they are. */
  readonly lines?: boolean;
}

/** The same without isolation, for a part of a text that is isolated already. */
export function Text({ text, lines = false }: TextProps) {
  const parts = splitHidden(text, { lines });
  if (parts.length === 1 && parts[0]?.hidden === false) return <>{text}</>;
  return (
    <>
      {parts.map((part, index) =>
        part.hidden ? (
          <span key={index} class="hidden-character" title={part.name}>
            {part.sign}
          </span>
        ) : (
          part.text
        ),
      )}
    </>
  );
}

/** A text of several lines from data. Its line ends stay; other invisible characters are shown as signs. */
export function LongText({ text }: { readonly text: string }) {
  return (
    <div class="long-text" dir="auto">
      <Text lines text={text} />
    </div>
  );
}

/** A part of a text: characters to show as they are, or one that would be invisible or would turn others around. */
type TextPart =
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
    parts.push({ hidden: true, sign: signsOfHidden[character] ?? `U+${code}`, name: `Character U+${code}` });
    written = index + character.length;
  }
  keep(text.length);
  return parts;
}

const signsOfHidden: Readonly<Record<string, string>> = { '\n': '↵', '\t': '⇥', '\r': '␍' };

/** A zero-width joiner between two pictures joins them to one, as in 👩‍🚀. */
function isPartOfEmoji(text: string, index: number, character: string): boolean {
  return character === '\u200d' && /\p{Emoji}\ufe0f?$/u.test(text.slice(Math.max(0, index - 4), index));
}
