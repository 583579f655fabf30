import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import './bar-chart.css';
import { countText } from '../components/numbers.ts';
import { type TimeDetail, timeText, timeZone } from '../components/time.tsx';
import { chartColours } from './chart-colours.ts';
import { tickText } from './tick-text.ts';

export interface BarSeries {
  readonly label: string;
  /** The custom property of its colour: `--create-bar`. */
  readonly colour: string;
  readonly counts: readonly number[];
}

export interface BarChartProps {
  /** What the chart shows, for those who do not see it. */
  readonly label: string;
  /** Where each bar begins, in milliseconds since 1970. */
  readonly starts: readonly number[];
  /** Milliseconds of a bar. */
  readonly width: number;
  /** Stacked, the first one lowest. */
  readonly series: readonly BarSeries[];
  readonly height?: number;
  /** Called with the range that was dragged over, or the bar that was chosen, in milliseconds since 1970. */
  readonly onRange?: ((from: number, to: number) => void) | undefined;
  /** Days of the service are UTC. Left out: what the reader has chosen. */
  readonly zone?: 'utc' | undefined;
}

/**
 * Stacked bars over time. One clicks on a bar, drags over a part, or moves with the arrow keys and presses Enter, to narrow the time. The figures
 * of the bar at the pointer or the keyboard stand above it.
 */
export function BarChart(props: BarChartProps) {
  const { label, starts, width, series, height = 132, zone } = props;
  const host = useRef<HTMLDivElement>(null);
  const readout = useRef<HTMLParagraphElement>(null);
  const chart = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const usedZone = zone ?? timeZone.value;

  // The chart is made once for each set of data; callbacks are the latest.
  useEffect(() => {
    const element = host.current;
    if (element === null || starts.length === 0) return;
    const draw = () => {
      chart.current?.destroy();
      chart.current = makeChart(element, latest, (index) => {
        if (readout.current !== null)
          readout.current.textContent = index === undefined ? '' : barText(latest.current, index);
      });
    };
    draw();
    const sizes = new ResizeObserver(() => {
      if (element.clientWidth > 0) chart.current?.setSize({ width: element.clientWidth, height });
    });
    sizes.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    return () => {
      sizes.disconnect();
      scheme.removeEventListener('change', draw);
      chart.current?.destroy();
      chart.current = undefined;
    };
  }, [starts, width, series, height, usedZone]);

  const place = useRef(-1);
  const onKeyDown = (event: KeyboardEvent) => {
    const plot = chart.current;
    if (plot === undefined) return;
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = place.current < 0 ? (step > 0 ? 0 : starts.length - 1) : place.current + step;
      place.current = Math.min(starts.length - 1, Math.max(0, next));
      const middle = ((starts[place.current] ?? 0) + width / 2) / 1_000;
      plot.setCursor({ left: plot.valToPos(middle, 'x'), top: 10 });
    } else if (event.key === 'Enter' && place.current >= 0) {
      showBar(props, place.current);
    }
  };

  return (
    <figure class="bar-chart">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move over the bars. */}
      <div ref={host} class="bar-chart-plot" role="application" tabIndex={0} aria-label={label} onKeyDown={onKeyDown} />
      <p ref={readout} class="bar-chart-readout number" aria-live="polite" />
    </figure>
  );
}

function barText({ starts, width, series, zone }: BarChartProps, index: number): string {
  const from = starts[index] ?? 0;
  const detail = detailOf(width);
  const used = zone ?? timeZone.value;
  const end =
    width >= dayLength
      ? ''
      : ` – ${timeText(from + width, detail === 'second' ? 'clock' : 'minute', used)
          .split(' ')
          .at(-1)}`;
  const total = series.reduce((sum, { counts }) => sum + (counts[index] ?? 0), 0);
  const parts = series
    .filter(({ counts }) => (counts[index] ?? 0) > 0)
    .map((one) => `${one.label} ${countText(one.counts[index] ?? 0)}`);
  return `${timeText(from, detail, used)}${end}   ${[countText(total), ...parts].join(' · ')}`;
}

const dayLength = 86_400_000;

function detailOf(width: number): TimeDetail {
  if (width >= dayLength) return 'day';
  return width >= 60_000 ? 'minute' : 'second';
}

function makeChart(
  element: HTMLElement,
  latest: { readonly current: BarChartProps },
  onBar: (index: number | undefined) => void,
): uPlot {
  const { starts, width, series, height = 132, zone, onRange } = latest.current;
  const colours = chartColours(element);
  const middles = starts.map((start) => (start + width / 2) / 1_000);
  // Each series is drawn over the sum of it and those below, the highest first.
  const sums = series.map((_, top) =>
    starts.map((_start, index) => series.slice(0, top + 1).reduce((sum, { counts }) => sum + (counts[index] ?? 0), 0)),
  );
  const bars = uPlot.paths.bars?.({ size: [0.84, 48], radius: 0.12 });
  const axis = { stroke: colours.text, font: colours.font, ticks: { show: false }, gap: 4 } as const;
  const first = (starts[0] ?? 0) / 1_000;
  const last = ((starts.at(-1) ?? 0) + width) / 1_000;
  const usedZone = zone ?? timeZone.value;
  return new uPlot(
    {
      width: Math.max(element.clientWidth, 200),
      height,
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
      scales: { x: { range: [first, last] }, y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.05)] } },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 26,
          space: 64,
          values: (_plot, ticks, _axis, _space, distance) => ticks.map((tick) => tickText(tick, distance, usedZone)),
        },
        {
          ...axis,
          grid: { stroke: colours.grid, width: 1 },
          size: 46,
          space: 34,
          // Counts are whole.
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7],
          values: (_plot, ticks) => ticks.map(shortCount),
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
        setCursor: [({ cursor: { idx } }) => onBar(idx ?? undefined)],
        setSelect: [
          (plot) => {
            const { left, width: pixels } = plot.select;
            if (pixels < minDrag) return;
            const from = plot.posToVal(left, 'x') * 1_000;
            const to = plot.posToVal(left + pixels, 'x') * 1_000;
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            latest.current.onRange?.(...wholeBars(latest.current, from, to));
          },
        ],
      },
    },
    [middles, ...sums.toReversed()],
    element,
  );
}

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

/** Narrows the time to one bar. */
function showBar({ starts, width, onRange }: BarChartProps, index: number | null | undefined): void {
  const from = starts[index ?? -1];
  if (from !== undefined) onRange?.(from, from + width);
}

/** The bars that a range touches. A part of a bar cannot be told apart by eye. */
function wholeBars({ starts, width }: BarChartProps, from: number, to: number): [number, number] {
  const first = starts[0] ?? 0;
  const end = (starts.at(-1) ?? 0) + width;
  const begin = first + Math.floor((from - first) / width) * width;
  const until = first + Math.ceil((to - first) / width) * width;
  return [Math.max(first, begin), Math.min(end, until)];
}

function shortCount(count: number): string {
  if (count >= 1e6) return `${count / 1e6}M`;
  return count >= 1e3 ? `${count / 1e3}k` : String(count);
}
