import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Text } from './name.tsx';

/** Pixels of a line; `lines.css` has the same. */
const lineHeight = 20;
/** Characters of a line that are shown. A line of 16 MiB would stop the browser. */
const maxLineLength = 5_000;
const margin = 20;

/** A long text by lines, of which only those in view are made: 16 MiB scroll as lightly as one screen. */
export function LinesView({ text, label }: { readonly text: string; readonly label: string }) {
  const lines = useMemo(() => text.split('\n'), [text]);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (box.current !== null) setHeight(box.current.clientHeight);
  }, []);
  const first = Math.max(0, Math.floor(top / lineHeight) - margin);
  const last = Math.min(lines.length, Math.ceil((top + height) / lineHeight) + margin);
  return (
    <section
      ref={box}
      class="lines-view"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls what is longer than the screen.
      tabIndex={0}
      aria-label={label}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div class="lines-whole" style={{ height: `${lines.length * lineHeight}px` }}>
        <pre style={{ transform: `translateY(${first * lineHeight}px)` }}>
          {lines.slice(first, last).map((line, index) => (
            <div key={first + index} class="line" dir="ltr">
              <Text text={line.length > maxLineLength ? `${line.slice(0, maxLineLength)} …` : line} />
            </div>
          ))}
        </pre>
      </div>
    </section>
  );
}
