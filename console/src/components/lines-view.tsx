import { useEffect, useRef, useState } from 'preact/hooks';
import { useInSlices } from '../api/requests.ts';
import { Skeleton } from './states.tsx';
import { Text } from './text.tsx';
import { lineOf, lineStarts } from './text-lines.ts';

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
