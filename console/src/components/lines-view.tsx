import type { Steps } from '@annals/client/json';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useInSlices } from '../api/requests.ts';
import { Skeleton } from './states.tsx';
import { Text } from './text.tsx';

/** Pixels of a line; `values.css` has the same. */
const lineHeight = 20;
/** Lines above and below those in view. */
const margin = 20;
/** Pixels. Browsers make nothing higher than some ten millions, so longer texts scroll faster. */
const maxHeight = 8_000_000;

interface LinesViewProps {
  readonly text: string;
  readonly label: string;
  /** Characters of a line. A longer one continues on the next line. */
  readonly maxLength?: number;
}

/** A long text by lines, of which only those in view are made: 16 MiB scroll as lightly as one screen. */
export function LinesView({ text, label, maxLength = 1_000 }: LinesViewProps) {
  const { value: starts } = useInSlices(() => lineStarts(text, maxLength), [text, maxLength]);
  const [top, setTop] = useState(0);
  const [viewHeight, setViewHeight] = useState(600);
  const box = useRef<HTMLDivElement>(null);
  const isReady = starts !== undefined;
  useEffect(() => {
    if (isReady && box.current !== null) setViewHeight(box.current.clientHeight);
  }, [isReady]);
  if (starts === undefined) return <Skeleton />;
  const whole = starts.length * lineHeight;
  const height = Math.min(whole, maxHeight);
  const position = height === whole ? top : (top * (whole - viewHeight)) / (height - viewHeight);
  const first = Math.max(0, Math.floor(position / lineHeight) - margin);
  const last = Math.min(starts.length, Math.ceil((position + viewHeight) / lineHeight) + margin);
  return (
    <section
      ref={box}
      class="lines-view"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what is longer than the screen.
      tabIndex={0}
      aria-label={label}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div class="lines-whole" style={{ height: `${height}px` }}>
        <pre style={{ transform: `translateY(${top - position + first * lineHeight}px)` }}>
          {Array.from({ length: last - first }, (_, index) => (
            <div key={first + index} class="line" dir="ltr">
              <Text text={lineOf(text, starts, first + index)} />
            </div>
          ))}
        </pre>
      </div>
    </section>
  );
}

/** Lines of a step. */
const stepSize = 2_000;

/** The offset of each line of a text. A line longer than `maxLength` continues on the next one. */
export function* lineStarts(text: string, maxLength: number): Steps<number[]> {
  const starts = [0];
  let lineEnd = text.indexOf('\n');
  for (let start = 0; ; ) {
    if (lineEnd === -1) lineEnd = text.length;
    start = lineEnd - start > maxLength ? cutBetween(text, start + maxLength) : lineEnd + 1;
    if (start > lineEnd) lineEnd = text.indexOf('\n', start);
    if (start > text.length) return starts;
    starts.push(start);
    if (starts.length % stepSize === 0) yield;
  }
}

/** A character of two units stays whole. */
function cutBetween(text: string, place: number): number {
  const unit = text.charCodeAt(place - 1);
  return unit >= 0xd800 && unit < 0xdc00 ? place - 1 : place;
}

/** A line without its end. */
export function lineOf(text: string, starts: readonly number[], index: number): string {
  const line = text.slice(starts[index], starts[index + 1] ?? text.length);
  return line.endsWith('\n') ? line.slice(0, -1) : line;
}
