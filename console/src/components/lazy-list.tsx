import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from './button.tsx';
import { countText } from './numbers.ts';

interface LazyListProps<Item> {
  readonly items: readonly Item[];
  readonly render: (item: Item, index: number) => ComponentChildren;
  /** Items that are made at once. */
  readonly portion?: number;
  /** Wraps the button for the rest, where a list allows certain elements alone. */
  readonly rest?: (button: ComponentChildren) => ComponentChildren;
}

/** Makes the items of a long list as the reader comes to them. */
export function LazyList<Item>({ items, render, portion = 60, rest = (button) => button }: LazyListProps<Item>) {
  const [shown, setShown] = useState(portion);
  const end = useRef<HTMLDivElement>(null);
  const left = items.length - shown;

  // Each portion moves the end, which may be in view still.
  useEffect(() => {
    const element = end.current;
    if (element === null) return;
    const watch = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) setShown((count) => count + portion);
    });
    watch.observe(element);
    return () => watch.disconnect();
  }, [shown, portion, items]);

  return (
    <>
      {items.slice(0, shown).map(render)}
      {left <= 0
        ? undefined
        : rest(
            <div ref={end} class="list-rest">
              <Button onClick={() => setShown(shown + portion)}>Show more of {countText(left)}</Button>
            </div>,
          )}
    </>
  );
}
