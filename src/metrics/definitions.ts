/** How the figures of several processes are combined. */
type Aggregation = 'sum' | 'max' | 'min';

interface Definition {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels?: readonly string[];
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
  /** Default: sum. */
  readonly aggregation?: Aggregation;
}

const requestBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const callBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

/** Every metric. Labels (see docs/metrics.md) have no tenants, secrets, addresses or other choices of clients. */
export const definitions = {
  annals_info: { type: 'gauge', help: 'Processes of this version', labels: ['version'] },
  annals_process_start_time_seconds: {
    type: 'gauge',
    help: 'When the process started, in seconds since 1970',
    aggregation: 'min',
  },
  annals_process_cpu_seconds_total: { type: 'counter', help: 'Processor time', labels: ['mode'] },
  annals_process_resident_memory_bytes: { type: 'gauge', help: 'Memory that the process has' },
  annals_process_heap_used_bytes: { type: 'gauge', help: 'Memory of JavaScript objects', aggregation: 'max' },
  annals_process_heap_limit_bytes: { type: 'gauge', help: 'Maximum memory of JavaScript objects', aggregation: 'min' },
  annals_process_external_memory_bytes: { type: 'gauge', help: 'Memory of buffers beside the heap' },
  annals_event_loop_busy_seconds_total: { type: 'counter', help: 'Time in which the event loop worked' },
  annals_event_loop_delay_p50_seconds: { type: 'gauge', help: 'Median delay of timers', aggregation: 'max' },
  annals_event_loop_delay_p99_seconds: { type: 'gauge', help: '99th percentile of the delay', aggregation: 'max' },
  annals_event_loop_delay_max_seconds: { type: 'gauge', help: 'Maximum delay of timers', aggregation: 'max' },

  annals_http_requests_total: { type: 'counter', help: 'Answered requests', labels: ['route', 'method', 'status'] },
  annals_http_request_duration_seconds: {
    type: 'histogram',
    help: 'Time from the head of a request to the end of its answer',
    labels: ['route', 'method'],
    buckets: requestBuckets,
  },
  annals_http_requests_in_flight: { type: 'gauge', help: 'Requests that are not answered yet' },
  annals_http_answers_cut_total: { type: 'counter', help: 'Answers that ended before they were complete' },
  annals_share_places: { type: 'gauge', help: 'Places of a share', labels: ['share'] },
  annals_share_used: { type: 'gauge', help: 'Places of a share that are taken', labels: ['share'] },
  annals_share_waiting: { type: 'gauge', help: 'Callers that wait for a place of a share', labels: ['share'] },

  annals_database_up: { type: 'gauge', help: 'Whether the database answers: 1 or 0', aggregation: 'min' },
  annals_database_writable: { type: 'gauge', help: 'Whether the database takes writes: 1 or 0', aggregation: 'min' },
  annals_database_figures_missing: {
    type: 'gauge',
    help: 'Figures that took the database too long',
    aggregation: 'max',
  },
  annals_database_size_bytes: { type: 'gauge', help: 'What the database takes of the disk', aggregation: 'max' },
  annals_database_log_bytes: { type: 'gauge', help: 'Write-ahead log that its server keeps', aggregation: 'max' },
  annals_database_disk_bytes: { type: 'gauge', help: 'Size of the disk of the embedded database', aggregation: 'max' },
  annals_database_disk_free_bytes: { type: 'gauge', help: 'What is free of that disk', aggregation: 'min' },
  annals_database_connections: { type: 'gauge', help: 'Open connections', labels: ['pool', 'state'] },
  annals_database_connections_max: { type: 'gauge', help: 'Maximum connections', labels: ['pool'] },
  annals_database_connections_waiting: { type: 'gauge', help: 'Callers that wait for one', labels: ['pool'] },

  annals_changes_total: { type: 'counter', help: 'Changes that came in batches', labels: ['way', 'outcome'] },
  annals_rejected_changes: { type: 'gauge', help: 'Rejected changes that are kept', aggregation: 'max' },
  annals_pending_changes: { type: 'gauge', help: 'Changes that are not folded yet', aggregation: 'max' },
  annals_pending_oldest_seconds: {
    type: 'gauge',
    help: 'How long the oldest of them has been seen',
    aggregation: 'max',
  },
  annals_folds_total: { type: 'counter', help: 'Portions of changes that were folded' },
  annals_folded_changes_total: { type: 'counter', help: 'Changes that were folded' },
  annals_fold_failures_total: { type: 'counter', help: 'Folds that failed and are tried again' },

  annals_unsealed_positions: {
    type: 'gauge',
    help: 'Positions without a checkpoint, of the tenant with most',
    aggregation: 'max',
  },
  annals_unsealed_oldest_seconds: {
    type: 'gauge',
    help: 'Time since the recording of the oldest change without a checkpoint',
    aggregation: 'max',
  },
  annals_altered_histories: {
    type: 'gauge',
    help: 'Histories that were not what was sealed when they were checked last',
    aggregation: 'max',
  },
  annals_set_back_histories: {
    type: 'gauge',
    help: 'Histories that were set back behind what the key had signed, in the last seven days',
    aggregation: 'max',
  },
  annals_cosignatures_total: { type: 'counter', help: 'Answers of witnesses to checkpoints', labels: ['outcome'] },

  annals_jobs: { type: 'gauge', help: 'Jobs that have not ended', labels: ['type', 'state'], aggregation: 'max' },
  annals_job_oldest_seconds: {
    type: 'gauge',
    help: 'Time since the oldest of these jobs was queued',
    labels: ['type', 'state'],
    aggregation: 'max',
  },
  annals_jobs_ended_total: { type: 'counter', help: 'Jobs that this process ended', labels: ['type', 'status'] },
  annals_mails_waiting: { type: 'gauge', help: 'E-mails that are not sent yet', aggregation: 'max' },
  annals_mail_oldest_seconds: { type: 'gauge', help: 'Time since the oldest was queued', aggregation: 'max' },
  annals_deliveries_total: {
    type: 'counter',
    help: 'Attempts to deliver to the targets of subscriptions',
    labels: ['target', 'outcome'],
  },
  annals_subscriptions: { type: 'gauge', help: 'Subscriptions', labels: ['target', 'state'], aggregation: 'max' },
  annals_delivery_parked_changes: {
    type: 'gauge',
    help: 'Changes that are parked as failed',
    labels: ['target'],
    aggregation: 'max',
  },
  annals_delivery_lag_positions: {
    type: 'gauge',
    help: 'Positions that the slowest subscription is behind',
    labels: ['target'],
    aggregation: 'max',
  },
  annals_delivery_lag_seconds: {
    type: 'gauge',
    help: 'Time since the recording of the oldest change that is not delivered',
    labels: ['target'],
    aggregation: 'max',
  },
  annals_console_sessions: { type: 'gauge', help: 'Sessions that have not expired', aggregation: 'max' },

  annals_provider_calls_total: { type: 'counter', help: 'Ended calls of providers', labels: ['provider', 'outcome'] },
  annals_provider_call_duration_seconds: {
    type: 'histogram',
    help: 'Time from a call of a provider to the end of its answer',
    labels: ['provider'],
    buckets: callBuckets,
  },
  annals_tool_calls_total: {
    type: 'counter',
    help: 'Ended calls of servers of tools',
    labels: ['operation', 'outcome'],
  },
  annals_quota_refusals_total: { type: 'counter', help: 'Calls that the quota refused', labels: ['reason'] },

  annals_capture_position_age_seconds: {
    type: 'gauge',
    help: 'Time since capture last stored its position',
    aggregation: 'max',
  },
  annals_capture_lag_seconds: { type: 'gauge', help: 'Age of the last recorded commit when it was recorded' },
  annals_capture_lag_bytes: { type: 'gauge', help: 'Log of the source that is not recorded yet' },
  annals_capture_slot_bytes: { type: 'gauge', help: 'Log that the source keeps for the slot' },
  annals_capture_slot_safe_bytes: { type: 'gauge', help: 'Log until the source drops what the slot needs' },
  annals_relay_source_up: { type: 'gauge', help: 'Whether the source of the relay answers: 1 or 0' },
  annals_relay_pending_changes: { type: 'gauge', help: 'Rows of the outbox that are not relayed yet' },
  annals_relay_oldest_seconds: { type: 'gauge', help: 'Age of the oldest of them' },
} as const satisfies Record<string, Definition>;

export type MetricName = keyof typeof definitions;

type NamesOf<Type extends Definition['type']> = {
  [Name in MetricName]: (typeof definitions)[Name]['type'] extends Type ? Name : never;
}[MetricName];

export type CounterName = NamesOf<'counter'>;
export type GaugeName = NamesOf<'gauge'>;
export type HistogramName = NamesOf<'histogram'>;

/** A value for each label of a metric. */
export type LabelsOf<Name extends MetricName> = (typeof definitions)[Name] extends {
  readonly labels: readonly (infer Label extends string)[];
}
  ? Readonly<Record<Label, string>>
  : Readonly<Record<never, string>>;

export const metricDefinitions: Readonly<Record<MetricName, Definition>> = definitions;
