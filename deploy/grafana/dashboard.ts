interface Panel {
  title: string;
  /** One of Grafana's units. */
  unit: string;
  /** PromQL expressions by legend. */
  queries: Readonly<Record<string, string>>;
}

/** Columns of Grafana's grid. */
const gridWidth = 24;
const datasource = { type: 'prometheus', uid: `\${datasource}` };

const rows: readonly { title: string; panels: readonly Panel[] }[] = [
  {
    title: 'Requests',
    panels: [
      {
        title: 'Requests by status',
        unit: 'reqps',
        queries: { '{{status}}': 'sum by (status) (rate(annals_http_requests_total[$__rate_interval]))' },
      },
      {
        title: 'Time of requests',
        unit: 's',
        queries: {
          '50 %':
            'histogram_quantile(0.5, sum by (le) (rate(annals_http_request_duration_seconds_bucket[$__rate_interval])))',
          '95 %':
            'histogram_quantile(0.95, sum by (le) (rate(annals_http_request_duration_seconds_bucket[$__rate_interval])))',
          '99 %':
            'histogram_quantile(0.99, sum by (le) (rate(annals_http_request_duration_seconds_bucket[$__rate_interval])))',
        },
      },
      {
        title: 'Slowest routes, 95 %',
        unit: 's',
        queries: {
          '{{method}} {{route}}':
            'topk(8, histogram_quantile(0.95, sum by (le, route, method) (rate(annals_http_request_duration_seconds_bucket[$__rate_interval]))))',
        },
      },
      {
        title: 'Requests in flight',
        unit: 'short',
        queries: {
          'in flight': 'sum(annals_http_requests_in_flight)',
          'answers cut a second': 'sum(rate(annals_http_answers_cut_total[$__rate_interval]))',
        },
      },
      {
        title: 'Refused and failed',
        unit: 'reqps',
        queries: {
          '{{status}} {{route}}':
            'sum by (status, route) (rate(annals_http_requests_total{status=~"429|5.."}[$__rate_interval]))',
        },
      },
      {
        title: 'Callers that wait for a share',
        unit: 'short',
        queries: { '{{share}}': 'sum by (share) (annals_share_waiting) > 0' },
      },
    ],
  },
  {
    title: 'Database',
    panels: [
      {
        title: 'Database answers',
        unit: 'short',
        queries: {
          up: 'min(annals_database_up)',
          'takes writes': 'min(annals_database_writable)',
          'figures missing': 'max(annals_database_figures_missing)',
        },
      },
      {
        title: 'Disk of the database',
        unit: 'bytes',
        queries: {
          database: 'max(annals_database_size_bytes)',
          'write-ahead log': 'max(annals_database_log_bytes)',
          'free, embedded': 'min(annals_database_disk_free_bytes)',
          'disk, embedded': 'max(annals_database_disk_bytes)',
        },
      },
      {
        title: 'Connections',
        unit: 'short',
        queries: {
          '{{pool}} {{state}}': 'sum by (pool, state) (annals_database_connections)',
          '{{pool}} waiting': 'sum by (pool) (annals_database_connections_waiting)',
          maximum: 'sum(annals_database_connections_max)',
        },
      },
      {
        title: 'Shares used',
        unit: 'percentunit',
        queries: { '{{share}}': 'sum by (share) (annals_share_used) / sum by (share) (annals_share_places)' },
      },
    ],
  },
  {
    title: 'Change history',
    panels: [
      {
        title: 'Changes by way and outcome',
        unit: 'cps',
        queries: { '{{way}} {{outcome}}': 'sum by (way, outcome) (rate(annals_changes_total[$__rate_interval])) > 0' },
      },
      {
        title: 'Waiting to be folded',
        unit: 'short',
        queries: {
          changes: 'max(annals_pending_changes)',
          'seconds of the oldest': 'max(annals_pending_oldest_seconds)',
        },
      },
      {
        title: 'Waiting for a checkpoint',
        unit: 'short',
        queries: {
          positions: 'max(annals_unsealed_positions)',
          'seconds of the oldest': 'max(annals_unsealed_oldest_seconds)',
          'altered histories': 'max(annals_altered_histories)',
          'histories set back': 'max(annals_set_back_histories)',
          'cosignatures refused in an hour': 'sum(increase(annals_cosignatures_total{outcome="refused"}[1h]))',
        },
      },
      {
        title: 'Folding',
        unit: 'cps',
        queries: {
          changes: 'sum(rate(annals_folded_changes_total[$__rate_interval]))',
          folds: 'sum(rate(annals_folds_total[$__rate_interval]))',
          failures: 'sum(rate(annals_fold_failures_total[$__rate_interval]))',
        },
      },
      {
        title: 'Capture: behind its source',
        unit: 's',
        queries: {
          lag: 'max(annals_capture_lag_seconds)',
          'age of the position': 'max(annals_capture_position_age_seconds)',
        },
      },
      {
        title: 'Capture: log at the source',
        unit: 'bytes',
        queries: {
          'not recorded': 'max(annals_capture_lag_bytes)',
          'kept for the slot': 'max(annals_capture_slot_bytes)',
          'until it is dropped': 'min(annals_capture_slot_safe_bytes)',
        },
      },
      {
        title: 'Relay and rejected changes',
        unit: 'short',
        queries: {
          'rows of the outbox': 'max(annals_relay_pending_changes)',
          'seconds of the oldest': 'max(annals_relay_oldest_seconds)',
          'source up': 'min(annals_relay_source_up)',
          'rejected changes kept': 'max(annals_rejected_changes)',
        },
      },
    ],
  },
  {
    title: 'Deliveries',
    panels: [
      {
        title: 'Attempts by target and outcome',
        unit: 'cps',
        queries: {
          '{{target}} {{outcome}}': 'sum by (target, outcome) (rate(annals_deliveries_total[$__rate_interval]))',
        },
      },
      {
        title: 'Lag in seconds',
        unit: 's',
        queries: { '{{target}}': 'max by (target) (annals_delivery_lag_seconds)' },
      },
      {
        title: 'Lag in positions',
        unit: 'short',
        queries: { '{{target}}': 'max by (target) (annals_delivery_lag_positions)' },
      },
      {
        title: 'Subscriptions and parked changes',
        unit: 'short',
        queries: {
          '{{target}} {{state}}': 'max by (target, state) (annals_subscriptions)',
          '{{target}} parked': 'max by (target) (annals_delivery_parked_changes)',
        },
      },
    ],
  },
  {
    title: 'AI desk, jobs, e-mail',
    panels: [
      {
        title: 'Calls of providers',
        unit: 'cps',
        queries: {
          '{{provider}} {{outcome}}':
            'sum by (provider, outcome) (rate(annals_provider_calls_total[$__rate_interval]))',
        },
      },
      {
        title: 'Time of calls, 95 %',
        unit: 's',
        queries: {
          '{{provider}}':
            'histogram_quantile(0.95, sum by (le, provider) (rate(annals_provider_call_duration_seconds_bucket[$__rate_interval])))',
        },
      },
      {
        title: 'Calls of servers of tools',
        unit: 'cps',
        queries: {
          '{{operation}} {{outcome}}': 'sum by (operation, outcome) (rate(annals_tool_calls_total[$__rate_interval]))',
        },
      },
      {
        title: 'Refused by the quota',
        unit: 'cps',
        queries: { '{{reason}}': 'sum by (reason) (rate(annals_quota_refusals_total[$__rate_interval]))' },
      },
      { title: 'Jobs', unit: 'short', queries: { '{{type}} {{state}}': 'max by (type, state) (annals_jobs)' } },
      {
        title: 'Oldest job, ended jobs',
        unit: 's',
        queries: {
          '{{type}} {{state}}': 'max by (type, state) (annals_job_oldest_seconds)',
          '{{type}} {{status}} a second': 'sum by (type, status) (rate(annals_jobs_ended_total[$__rate_interval]))',
        },
      },
      {
        title: 'E-mails and sessions',
        unit: 'short',
        queries: {
          'e-mails that wait': 'max(annals_mails_waiting)',
          'seconds of the oldest': 'max(annals_mail_oldest_seconds)',
          'sessions of the console': 'max(annals_console_sessions)',
        },
      },
    ],
  },
  {
    title: 'Processes',
    panels: [
      {
        title: 'Processor time',
        unit: 'percentunit',
        queries: {
          '{{instance}} {{mode}}': 'sum by (instance, mode) (rate(annals_process_cpu_seconds_total[$__rate_interval]))',
          '{{instance}} event loop': 'sum by (instance) (rate(annals_event_loop_busy_seconds_total[$__rate_interval]))',
        },
      },
      {
        title: 'Memory',
        unit: 'bytes',
        queries: {
          '{{instance}} process': 'annals_process_resident_memory_bytes',
          '{{instance}} heap': 'annals_process_heap_used_bytes',
          '{{instance}} heap limit': 'annals_process_heap_limit_bytes',
          '{{instance}} buffers': 'annals_process_external_memory_bytes',
        },
      },
      {
        title: 'Delay of the event loop',
        unit: 's',
        queries: {
          '{{instance}} 50 %': 'annals_event_loop_delay_p50_seconds',
          '{{instance}} 99 %': 'annals_event_loop_delay_p99_seconds',
          '{{instance}} maximum': 'annals_event_loop_delay_max_seconds',
        },
      },
      {
        title: 'Since the start',
        unit: 's',
        queries: {
          '{{instance}}': 'time() - annals_process_start_time_seconds',
          'processes of {{version}}': 'sum by (version) (annals_info)',
        },
      },
    ],
  },
];

/** The dashboard as Grafana imports it. */
export function dashboard() {
  const panels: object[] = [];
  let y = 0;
  for (const row of rows) {
    const gridPos = { h: 1, w: gridWidth, x: 0, y };
    panels.push({ id: panels.length + 1, type: 'row', title: row.title, collapsed: false, gridPos, panels: [] });
    y += 1;
    // Three in a line, or all four of a row with four.
    const across = row.panels.length === 4 ? 4 : 3;
    for (const [index, panel] of row.panels.entries()) {
      const place = {
        w: gridWidth / across,
        x: (index % across) * (gridWidth / across),
        y: y + 7 * Math.floor(index / across),
      };
      panels.push({ id: panels.length + 1, ...chart(panel), gridPos: { h: 7, ...place } });
    }
    y += 7 * Math.ceil(row.panels.length / across);
  }
  return {
    title: 'Annals',
    uid: 'annals',
    tags: ['annals'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    timezone: '',
    templating: {
      list: [
        { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source', current: {}, hide: 0 },
      ],
    },
    annotations: { list: [] },
    panels,
  };
}

function chart({ title, unit, queries }: Panel) {
  return {
    type: 'timeseries',
    title,
    datasource,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
    targets: Object.entries(queries).map(([legendFormat, expr], index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      expr,
      legendFormat,
      datasource,
    })),
  };
}
