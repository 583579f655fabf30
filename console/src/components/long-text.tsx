import { Text } from './name.tsx';

/** A text of several lines from data. Its line ends stay; other characters that nobody sees are shown as signs. */
export function LongText({ text }: { readonly text: string }) {
  return (
    <div class="long-text" dir="auto">
      <Text lines text={text} />
    </div>
  );
}
