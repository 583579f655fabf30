import type { ComponentChildren } from 'preact';
import type { TextName } from '../texts/en.ts';
import { useLanguage } from './language-context.ts';

interface SentenceProps {
  readonly text: TextName;
  /** What stands in the place of each name. */
  readonly with: Readonly<Record<string, ComponentChildren>>;
}

/** A text in whose places elements stand: each language has its own order. */
export function Sentence({ text, with: places }: SentenceProps) {
  const { direction, parts } = useLanguage();
  return (
    <bdi dir={direction}>
      {parts(text).map((part, index) => (index % 2 === 0 ? part : <span key={part}>{places[part]}</span>))}
    </bdi>
  );
}
