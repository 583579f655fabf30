import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { dollarsText } from '../components/numbers.ts';
import { timeZone } from '../components/times.ts';
import {
  type BarChartProps,
  type Bars,
  chartHeight,
  middleOf,
  type Range,
  showBar,
  textOfBar,
  textOfRange,
  tickTexts,
  wholeBars,
} from './bars.ts';

/** Draws stacked bars in an element; `onText` is called with the figures of the bar or the range at the pointer. */
export function drawBars(
  element: HTMLElement,
  latest: { readonly current: BarChartProps },
  onText: (text: string) => void,
): uPlot {
  const { starts, end, series, zone, unit, onRange } = latest.current;
  const colours = chartColours(element);
  const middles = starts.map((_start, index) => middleOf(latest.current, index) / 1_000);
  // Each series is drawn over the sum of it and those below, the highest first.
  const sums = series.map((_, top) =>
    starts.map((_start, index) => series.slice(0, top + 1).reduce((sum, { counts }) => sum + (counts[index] ?? 0), 0)),
  );
  const bars = uPlot.paths.bars?.({ size: [0.84, 48], radius: 0.12 });
  const axis = { stroke: colours.text, font: colours.font, ticks: { show: false }, gap: 4 } as const;
  const first = (starts[0] ?? 0) / 1_000;
  const last = end / 1_000;
  const usedZone = zone ?? timeZone.value;
  return new uPlot(
    {
      width: Math.max(element.clientWidth, 200),
      height: chartHeight,
      padding: [10, 20, 0, 0],
      legend: { show: false },
      tzDate:
        usedZone === 'local'
          ? (seconds) => new Date(seconds * 1e3)
          : (seconds) => uPlot.tzDate(new Date(seconds * 1e3), 'Etc/UTC'),
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: onRange !== undefined, y: false, setScale: false, dist: minDrag },
      },
      scales: {
        x: { range: [first, last] },
        y: { range: (_plot, _min, max) => [0, Math.max(unit === 'usd' ? 0.0001 : 1, max * 1.05)] },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 26,
          space: 64,
          values: (_plot, ticks, _axis, _space, distance) => tickTexts(ticks, distance, { zone: usedZone, end: last }),
        },
        {
          ...axis,
          grid: { stroke: colours.grid, width: 1 },
          size: unit === 'usd' ? 62 : 46,
          space: 34,
          incrs: unit === 'usd' ? stepsOfDollars : stepsOfCounts,
          values: (_plot, ticks) => ticks.map(unit === 'usd' ? dollarsText : shortCount),
        },
      ],
      series: [
        {},
        ...series
          .map(({ label, colour }) => ({
            label,
            fill: colours.of(colour),
            width: 0,
            ...(bars === undefined ? {} : { paths: bars }),
            points: { show: false },
          }))
          .toReversed(),
      ],
      hooks: {
        ready: [({ over, cursor }) => onClick(over, () => showBar(latest.current, cursor.idx))],
        setCursor: [
          (plot) => {
            const range = selectedRange(plot, latest.current);
            onText(
              range === undefined ? textOfBar(latest.current, plot.cursor.idx) : textOfRange(latest.current, range),
            );
          },
        ],
        setSelect: [
          (plot) => {
            const range = selectedRange(plot, latest.current);
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            if (range !== undefined) latest.current.onRange?.(...range);
          },
        ],
      },
    },
    [middles, ...sums.toReversed()],
    element,
  );
}

const steps = [1, 2, 5];
const stepsOfDollars = Array.from(
  { length: 30 },
  (_, index) => (steps[index % 3] ?? 1) * 10 ** (Math.floor(index / 3) - 5),
);
/** Counts are whole. */
const stepsOfCounts = Array.from({ length: 22 }, (_, index) => (steps[index % 3] ?? 1) * 10 ** Math.floor(index / 3));

/** Pixels. A shorter movement with the button down is a click. */
const minDrag = 5;

/** Calls back for a click, and not at the end of a drag. */
function onClick(element: HTMLElement, act: () => void): void {
  let from = 0;
  element.addEventListener('mousedown', ({ clientX }) => {
    from = clientX;
  });
  element.addEventListener('click', ({ clientX }) => {
    if (Math.abs(clientX - from) < minDrag) act();
  });
}

/** The whole bars that are dragged over; undefined where nothing is. */
function selectedRange(plot: uPlot, bars: Bars): Range | undefined {
  const { left, width } = plot.select;
  if (width < minDrag) return undefined;
  return wholeBars(bars, plot.posToVal(left, 'x') * 1_000, plot.posToVal(left + width, 'x') * 1_000);
}

function shortCount(count: number): string {
  if (count >= 1e6) return `${count / 1e6}M`;
  return count >= 1e3 ? `${count / 1e3}k` : String(count);
}

/** The colours of the design for a canvas, as they are now. */
interface ChartColours {
  readonly text: string;
  readonly grid: string;
  readonly font: string;
  /** The colour of a custom property. */
  readonly of: (property: string) => string;
}

/** A canvas does not know `light-dark()`, so the browser resolves each colour on an element. */
function chartColours(element: HTMLElement): ChartColours {
  const of = (property: string) => {
    const probe = document.createElement('span');
    probe.style.color = `var(${property})`;
    element.append(probe);
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
  return { text: of('--ink-soft'), grid: of('--border'), font: `11px ${getComputedStyle(element).fontFamily}`, of };
}
