import { useEffect, useRef } from 'preact/hooks';
import type uPlot from 'uplot';
import { useCode } from '../api/requests.ts';
import { FailureBox } from '../components/states.tsx';
import { timeZone } from '../components/times.ts';
import { type BarChartProps, chartHeight, middleOf, showBar } from './bars.ts';
import './bar-chart.css';

/** What draws comes after the page's own code: the entries below do not wait for it. */
const loadDrawing = async () => (await import('./draw-bars.ts')).drawBars;

/** Stacked bars over time. A click, a drag, or arrow keys and Enter narrow the time. Above are the figures of a bar. */
export function BarChart(props: BarChartProps) {
  const { label, starts, end, series, zone } = props;
  const host = useRef<HTMLDivElement>(null);
  const readout = useRef<HTMLParagraphElement>(null);
  const chart = useRef<uPlot>(undefined);
  /** The bar that the keyboard is at. */
  const place = useRef(-1);
  const latest = useRef(props);
  latest.current = props;
  const usedZone = zone ?? timeZone.value;
  const { code: drawBars, error } = useCode(loadDrawing);

  // The chart is made once for each set of data; callbacks are the latest.
  useEffect(() => {
    const element = host.current;
    if (element === null || drawBars === undefined || starts.length === 0) return;
    place.current = -1;
    const draw = () => {
      chart.current?.destroy();
      chart.current = drawBars(element, latest, (text) => {
        if (readout.current !== null) readout.current.textContent = text;
      });
    };
    draw();
    const sizes = new ResizeObserver(() => {
      if (element.clientWidth > 0) chart.current?.setSize({ width: element.clientWidth, height: chartHeight });
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
  }, [drawBars, starts, end, series, usedZone]);

  const onKeyDown = (event: KeyboardEvent) => {
    const plot = chart.current;
    if (plot === undefined) return;
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      const next = place.current < 0 ? (step > 0 ? 0 : starts.length - 1) : place.current + step;
      place.current = Math.min(starts.length - 1, Math.max(0, next));
      plot.setCursor({ left: plot.valToPos(middleOf(props, place.current) / 1_000, 'x'), top: 10 });
    } else if (event.key === 'Enter' && place.current >= 0) {
      showBar(props, place.current);
    }
  };

  if (error !== undefined) return <FailureBox error={error} />;
  return (
    <figure class="bar-chart">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move over the bars. */}
      <div ref={host} class="bar-chart-plot" role="application" tabIndex={0} aria-label={label} onKeyDown={onKeyDown} />
      <p ref={readout} class="bar-chart-readout number" aria-live="polite" />
    </figure>
  );
}
