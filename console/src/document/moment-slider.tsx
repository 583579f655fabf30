import { useEffect, useId, useLayoutEffect, useState } from 'preact/hooks';
import { countText } from '../components/numbers.ts';

interface MomentSliderProps {
  /** The change after which the document is shown. */
  readonly change: number;
  readonly total: number;
  readonly onChange: (change: number) => void;
}

/** Milliseconds that the slider stands still before its moment is fetched. */
const pause = 120;

/** Moves through the changes of a document, the oldest at the left. */
export function MomentSlider({ change, total, onChange }: MomentSliderProps) {
  const [position, setPosition] = useState(change);
  const id = useId();
  // Before the reader can move it: a move made at once would be lost.
  useLayoutEffect(() => setPosition(change), [change]);
  useEffect(() => {
    if (position === change) return;
    const timer = setTimeout(() => onChange(position), pause);
    return () => clearTimeout(timer);
  }, [position]);
  return (
    <div class="moment-slider">
      <label for={id}>
        After change <strong class="number">{countText(position)}</strong> of {countText(total)}
      </label>
      <input
        id={id}
        type="range"
        min={1}
        max={Math.max(1, total)}
        value={position}
        disabled={total < 2}
        onInput={(event) => setPosition(event.currentTarget.valueAsNumber)}
      />
    </div>
  );
}
