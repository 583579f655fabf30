import { useEffect, useRef } from 'preact/hooks';
import { Button } from './button.tsx';
import { countText } from './numbers.ts';

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
export function RangePager({ from, until, total, size, onRange }: RangePagerProps) {
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
