import type { ComponentChildren } from 'preact';
import { scanQuery } from '../query-text/scan-query.ts';

interface QueryHighlightProps {
  readonly text: string;
  /** The character that the service names; the end of the text is one beyond its last. */
  readonly faultOffset: number | undefined;
  /** Pixels that the input above is scrolled. */
  readonly scroll: number;
}

/** The query in colours, under an input whose own text is transparent. */
export function QueryHighlight({ text, faultOffset, scroll }: QueryHighlightProps) {
  const parts: ComponentChildren[] = [];
  const add = (start: number, end: number, kind: string) => {
    if (faultOffset !== undefined && faultOffset >= start && faultOffset < end) {
      push(start, faultOffset, kind);
      const length = text.codePointAt(faultOffset) === text.charCodeAt(faultOffset) ? 1 : 2;
      push(faultOffset, faultOffset + length, `${kind} fault`);
      push(faultOffset + length, end, kind);
    } else push(start, end, kind);
  };
  const push = (start: number, end: number, kind: string) => {
    if (end > start) {
      parts.push(
        <span key={start} class={`query-token ${kind}`}>
          {text.slice(start, end)}
        </span>,
      );
    }
  };
  let written = 0;
  for (const { kind, start, end } of scanQuery(text).tokens) {
    add(written, start, 'blank');
    add(start, end, kind);
    written = end;
  }
  add(written, text.length, 'blank');
  return (
    <div class="query-highlight" aria-hidden="true">
      <div style={{ transform: `translateX(${-scroll}px)` }}>
        {parts}
        {faultOffset !== undefined && faultOffset >= text.length ? <span class="query-token fault"> </span> : undefined}
      </div>
    </div>
  );
}
