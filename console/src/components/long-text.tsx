import { splitHidden } from './hidden-characters.ts';

/** A text of several lines from data. Its line ends stay; other characters that nobody sees are shown as signs. */
export function LongText({ text }: { readonly text: string }) {
  return (
    <div class="long-text" dir="auto">
      {splitHidden(text, { lines: true }).map((part, index) =>
        part.hidden ? (
          <span key={index} class="hidden-character" title={part.name}>
            {part.sign}
          </span>
        ) : (
          part.text
        ),
      )}
    </div>
  );
}
