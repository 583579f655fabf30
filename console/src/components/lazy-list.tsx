import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from './buttons.tsx';
import { countText } from './numbers.ts';

/** Items of which only a few are made at a time. An array is one. */
export interface Items<Item> {
  readonly length: number;
  slice(from: number, until: number): readonly Item[];
}

/** The pairs of a map, without a copy of all of them. */
export function itemsOf<Key, Value>(map: ReadonlyMap<Key, Value>): Items<readonly [Key, Value]> {
  return { length: map.size, slice: (from, until) => part(map, from, until) };
}

/** Some of what an iteration gives, by their places from 0. */
export function part<Item>(all: Iterable<Item>, from: number, until: number): Item[] {
  const found: Item[] = [];
  let place = 0;
  for (const item of all) {
    if (place >= until) break;
    if (place >= from) found.push(item);
    place += 1;
  }
  return found;
}

interface LazyListProps<Item> {
  readonly items: Items<Item>;
  readonly render: (item: Item, index: number) => ComponentChildren;
  /** Items that are made at once. */
  readonly portion?: number;
  /** Wraps buttons, where a list allows certain elements alone. */
  readonly rest?: (buttons: ComponentChildren) => ComponentChildren;
}

/** Portions on the page at once. A longer list has ranges, so that the page never has more elements. */
const maxPortions = 5;

/** Makes the items of a long list as the reader comes to them. */
export function LazyList<Item>({ items, render, portion = 60, rest = (buttons) => buttons }: LazyListProps<Item>) {
  const rangeSize = portion * maxPortions;
  const [start, setStart] = useState(0);
  const [shown, setShown] = useState(portion);
  const end = useRef<HTMLDivElement>(null);
  const from = start < items.length ? start : 0;
  const rangeEnd = Math.min(items.length, from + rangeSize);
  const until = Math.min(rangeEnd, from + shown);

  // Each portion moves the end, which may be in view still.
  useEffect(() => {
    const element = end.current;
    if (element === null) return;
    const watch = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) setShown((count) => count + portion);
    });
    watch.observe(element);
    return () => watch.disconnect();
  }, [until, portion, items]);

  const goTo = (place: number) => {
    setStart(place);
    setShown(portion);
  };
  return (
    <>
      {items.length <= rangeSize
        ? undefined
        : rest(<RangePager from={from} until={rangeEnd} total={items.length} size={rangeSize} onRange={goTo} />)}
      {items.slice(from, until).map((item, index) => render(item, from + index))}
      {until === rangeEnd
        ? undefined
        : rest(
            <div ref={end} class="list-rest">
              <Button onClick={() => setShown(shown + portion)}>Show more of {countText(rangeEnd - until)}</Button>
            </div>,
          )}
      {until < rangeEnd || rangeEnd === items.length
        ? undefined
        : rest(
            <div class="list-rest">
              <Button onClick={() => goTo(rangeEnd)}>Continue with {countText(rangeEnd + 1)}</Button>
            </div>,
          )}
    </>
  );
}

interface RangePagerProps {
  /** The places of the range, from 0; `until` is the first one after it. */
  readonly from: number;
  readonly until: number;
  readonly total: number;
  /** Items of a range. */
  readonly size: number;
  readonly onRange: (from: number) => void;
}

/** Says which items of a very long list are shown, and leads to the others. */
function RangePager({ from, until, total, size, onRange }: RangePagerProps) {
  const bar = useRef<HTMLDivElement>(null);
  const before = useRef(from);
  useEffect(() => {
    if (before.current !== from) bar.current?.scrollIntoView({ block: 'nearest' });
    before.current = from;
  }, [from]);
  return (
    <div ref={bar} class="range-pager">
      <Button
        icon="previous"
        aria-label={`${countText(size)} before`}
        disabled={from === 0}
        onClick={() => onRange(Math.max(0, from - size))}
      />
      <span class="number">
        {countText(from + 1)}–{countText(until)} of {countText(total)}
      </span>
      <Button
        icon="next"
        aria-label={`Next ${countText(size)}`}
        disabled={until === total}
        onClick={() => onRange(until)}
      />
      <label>
        Go to
        <input
          class="control range-place"
          type="number"
          min={1}
          max={total}
          value={from + 1}
          onChange={(event) => {
            const place = event.currentTarget.valueAsNumber;
            if (Number.isInteger(place)) onRange(Math.min(total, Math.max(1, place)) - 1);
          }}
        />
      </label>
    </div>
  );
}
