import type { Alert, Watch } from './prometheus.ts';

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

/** Whom an alert that fires calls, as docs/metrics.md has it. */
const called: Readonly<Record<string, string>> = {
  critical: 'it calls the operator on duty at once',
  warning: 'the operator sees it on the next working day',
  info: 'it calls nobody',
};

/** The end of a run: which alerts fired and whom they call, which ones were only pending, and what the dashboard showed. */
export async function watchReport(watch: Watch | undefined): Promise<string[]> {
  if (watch === undefined) return ['', 'There is no prometheus on the PATH: no alert was evaluated.'];
  const alerts = await watch.alerts();
  const lines = (state: string) => {
    const of = alerts.filter((alert) => alert.state === state);
    return of.length === 0 ? [`No alert was ${state}.`] : of.map((alert) => alertLine(alert, watch));
  };
  return ['', 'Alerts:', ...lines('firing'), ...lines('pending'), '', ...(await panelTable(watch)), ''];
}

function alertLine({ name, severity, state, since, until }: Alert, { phases }: Watch): string {
  const phase = phases.findLast((one) => one.since <= since)?.name;
  const whom = state === 'firing' ? `; ${called[severity] ?? ''}` : '';
  const seconds = Math.round((until - since) / 1000);
  return `${name} (${severity}) was ${state} for ${seconds} s from ${clock(since)} on, in the phase "${phase}"${whom}`;
}

const clock = (milliseconds: number) => new Date(milliseconds).toISOString().slice(11, 19);

/** A table of Markdown: of each panel its median in each phase with the least and the most, and its last value. */
async function panelTable({ range, phases }: Watch): Promise<string[]> {
  const rows = await Promise.all(
    Object.entries(panels).map(async ([name, expression]) => {
      const values = (await range(expression)).flatMap((one) => one.values);
      const cells = phases.map(({ since }, index) => {
        const until = phases[index + 1]?.since ?? Number.POSITIVE_INFINITY;
        return spread(values.filter(([second]) => second * 1000 >= since && second * 1000 < until));
      });
      return `| ${name} | ${cells.join(' | ')} | ${figure(Number(values.at(-1)?.[1]))} |`;
    }),
  );
  const names = phases.map(({ name }) => name);
  return [`| Panel | ${names.join(' | ')} | last |`, `|---|${names.map(() => '---:|').join('')}---:|`, ...rows];
}

function spread(values: readonly [number, string][]): string {
  const sorted = values
    .map(([, value]) => Number(value))
    .filter(Number.isFinite)
    .sort((one, other) => one - other);
  const [median, least, most] = [sorted[Math.floor(sorted.length / 2)], sorted[0], sorted.at(-1)];
  return least === most ? figure(median) : `${figure(median)} (${figure(least)} to ${figure(most)})`;
}

function figure(value = Number.NaN): string {
  return Number.isFinite(value) ? String(Number(value.toPrecision(3))) : '-';
}
