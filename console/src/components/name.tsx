import { splitHidden } from './hidden-characters.ts';

/**
 * A name or another text from data. Its direction cannot reach the text around it, and characters that nobody sees are shown
 * as signs with their code.
 */
export function Name({ text }: { readonly text: string }) {
  return <bdi>{text === '' ? <span class="muted">(empty)</span> : <Text text={text} />}</bdi>;
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
