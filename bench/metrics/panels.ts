import type { Watch } from './prometheus.ts';

/** What the dashboard shows of a run, by its expressions. */
const panels: Readonly<Record<string, string>> = {
  'requests a second': 'sum(rate(annals_http_requests_total[1m]))',
  '5xx a second': 'sum(rate(annals_http_requests_total{status=~"5.."}[1m])) or vector(0)',
  '95 % of GETs within, s':
    'histogram_quantile(0.95, sum by (le) (rate(annals_http_request_duration_seconds_bucket{method="GET"}[1m])))',
  'answers cut a minute': 'sum(increase(annals_http_answers_cut_total[1m]))',
  'database up': 'min(annals_database_up)',
  'event loop late (p99), s': 'max(annals_event_loop_delay_p99_seconds)',
  'changes recorded a second': 'sum(rate(annals_changes_total{outcome="recorded"}[1m]))',
  'pending changes': 'max(annals_pending_changes)',
  'pending since, s': 'max(annals_pending_oldest_seconds)',
  'oldest waiting job, s': 'max(annals_job_oldest_seconds{state="waiting"}) or vector(0)',
  'callers that wait for connections': 'sum(annals_share_waiting{share=~"connections for (reading|writing)"})',
  'heap used of its limit': 'max(annals_process_heap_used_bytes / annals_process_heap_limit_bytes)',
  'resident memory, MiB': 'sum(annals_process_resident_memory_bytes) / 1048576',
};

/** A table of Markdown: of each panel the first value, the median, the extremes and the last one. */
export async function panelTable({ range }: Watch): Promise<string[]> {
  const rows = await Promise.all(
    Object.entries(panels).map(async ([name, expression]) => {
      const series = await range(expression);
      const values = series.flatMap((one) => one.values.map(([, value]) => Number(value))).filter(Number.isFinite);
      const sorted = values.toSorted((one, other) => one - other);
      const shown = [values[0], sorted[Math.floor(sorted.length / 2)], sorted[0], sorted.at(-1), values.at(-1)];
      const cells = shown.map((value) => (value === undefined ? '-' : String(Number(value.toPrecision(3)))));
      return `| ${name} | ${cells.join(' | ')} |`;
    }),
  );
  return ['| Panel | first | median | minimum | maximum | last |', '|---|---:|---:|---:|---:|---:|', ...rows];
}
