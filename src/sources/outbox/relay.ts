import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { codeOf, OperatorError } from '../../core/errors.ts';
import { GrowingPause } from '../../core/repeat.ts';
import { BatchTrace, type Tracer } from '../../core/trace.ts';
import { onceStarted } from '../../postgres/connections/once-started.ts';
import type { Database } from '../../postgres/database.ts';
import { beginSource, connectSource, type Source, withSource } from '../../postgres/source/source.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import type { RecordBatch } from '../../recording/batches/record-batch.ts';
import type { Mapping } from '../../recording/mapping/mapping.ts';
import { RefusedChangesError, recordMapped } from '../../recording/mapping/record-mapped.ts';
import { maxRetries } from '../../recording/record-change.ts';
import type { SourceLog } from '../source-log.ts';
import { changesOfOutbox, isDelete, type OutboxReader } from './outbox-changes.ts';
import { deleteNotes, deleteRows, hasRows, outboxId, readLane, serverId, takeLane } from './outbox-rows.ts';
import { schemaFaults } from './outbox-schema.ts';
import { RecorderBusyError, RecorderError, type RecordRelayed } from './record-over-http.ts';
import { TriggerWatch } from './trigger-watch.ts';

export interface RelayOptions {
  readonly source: Source;
  readonly mapping: Mapping;
  readonly record: RecordRelayed;
  readonly log: SourceLog;
  readonly tracer?: Tracer | undefined;
  /** Stops the relay after the current rows. */
  readonly signal: AbortSignal;
  /** Milliseconds between checks of tables and triggers; default 10,000. */
  readonly lookInterval?: number;
  /** Called once, when the relay starts reading. */
  readonly onRunning?: () => void;
}

interface DirectRecording {
  readonly db: Database;
  readonly recordBatch: RecordBatch;
  /** The name of the relay in entries. */
  readonly name: string;
  readonly strict: boolean;
}

/** Records in Annals' database. */
export function recordDirectly({ db, recordBatch, name, strict }: DirectRecording): RecordRelayed {
  const recordedBy = { way: 'relay', by: name } as const;
  return async (changes) => {
    await inTransaction(db, (transaction) => recordMapped(transaction, changes, { recordBatch, recordedBy, strict }), {
      retries: maxRetries,
    });
  };
}

/**
 * One connection to the source each, with its polling interval in milliseconds while idle. Each holds one lane at a
 * time.
 */
const idlePauses = [200, 1_000];
/** Backoff in milliseconds while a database is unavailable. */
const pauses = { min: 200, max: 5_000 };

/**
 * Records the rows of the outbox and then deletes them, until the signal (recording.md 6). Retries while a database is
 * unavailable. Several relays share the lanes. Throws an OperatorError without an outbox, a RefusedChangesError, and a
 * RecorderError if a recorder refuses the client.
 */
export async function relay(options: RelayOptions): Promise<void> {
  const open = () => withSource(options.source, (client) => openOutbox(client, options), 'transactions');
  const reader = await onceStarted(open, {
    signal: options.signal,
    onWait: () => options.log.warn({}, 'the source is starting. The relay waits for it'),
  });
  if (reader === undefined) return;
  options.onRunning?.();
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const runs = idlePauses.map(async (idlePause) => {
    try {
      await run(reader, { ...options, signal, idlePause });
    } finally {
      stop.abort();
    }
  });
  const results = await Promise.allSettled(runs);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

async function openOutbox(client: pg.Client, { mapping, log, lookInterval }: RelayOptions): Promise<OutboxReader> {
  try {
    await refuseForeignSchema(client);
    const [outbox, server] = [await outboxId(client), await serverId(client)];
    const watch = new TriggerWatch(mapping, log, lookInterval);
    await watch.look(client);
    return { mapping, watch, outbox, server, warn: (message) => log.warn({}, message) };
  } catch (error) {
    const code = codeOf(error);
    if (code === '42P01' || code === '3F000')
      throw new OperatorError('the source has no outbox: run the SQL of annals outbox there');
    if (code === '42501') throw new OperatorError('the role of the source URL is no member of annals_relay');
    throw error;
  }
}

/** Rows of a schema that others own could say anything, and would be recorded. */
async function refuseForeignSchema(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ fault: string }>(schemaFaults);
  if (rows.length === 0) return;
  const faults = rows.map(({ fault }) => fault).join('; ');
  throw new OperatorError(`the schema annals of the source is not that of the outbox of Annals alone: ${faults}`);
}

async function run(reader: OutboxReader, options: RelayOptions & { idlePause: number }): Promise<void> {
  const { source, log, signal, idlePause } = options;
  const pause = new GrowingPause(pauses);
  let hasRelayed = false;
  while (!signal.aborted) {
    let client: pg.Client | undefined;
    try {
      client = await connectSource(source, 'transactions');
      while (!signal.aborted) {
        if (reader.watch.isDue) await inSource(client, (open) => reader.watch.look(open));
        const isBusy = (await hasRows(client)) && (await relayLane(client, reader, options));
        pause.reset();
        if (!isBusy && hasRelayed) await inSource(client, deleteNotes);
        hasRelayed = isBusy;
        if (!isBusy) await sleep(idlePause, undefined, { signal }).catch(() => {});
      }
    } catch (error) {
      if (error instanceof RefusedChangesError || error instanceof OperatorError || error instanceof RecorderError)
        throw error;
      if (signal.aborted) return;
      const wait = Math.max(pause.next(), (error instanceof RecorderBusyError ? error.retryAfter : undefined) ?? 0);
      log.warn({ err: error }, `the relay stopped and tries again in ${wait} ms`);
      await sleep(wait, undefined, { signal }).catch(() => {});
    } finally {
      await client?.end().catch(() => {});
    }
  }
}

async function inSource(client: pg.Client, work: (client: pg.Client) => Promise<void>): Promise<void> {
  await beginSource(client);
  await work(client);
  await client.query('commit');
}

/** Relays the first rows of a lane. Returns whether there were any. */
async function relayLane(
  client: pg.Client,
  reader: OutboxReader,
  { record, tracer }: Pick<RelayOptions, 'record' | 'tracer'>,
): Promise<boolean> {
  const trace = new BatchTrace(tracer, 'relay');
  trace.begin('read');
  await beginSource(client);
  const lane = await takeLane(client);
  const page = lane === undefined ? [] : await readLane(client, lane);
  const last = page.at(-1);
  // The other half of a move may be on the next page.
  const rows = page.length > 1 && last !== undefined && isDelete(last) ? page.slice(0, -1) : page;
  if (lane === undefined || rows.length === 0) {
    await client.query('commit');
    return false;
  }
  let hasFailed = true;
  try {
    trace.begin('map');
    const changes = changesOfOutbox(rows, reader);
    if (changes.length > 0) await trace.run('record', () => record(changes));
    trace.begin('delete');
    await deleteRows(client, lane, rows);
    await client.query('commit');
    hasFailed = false;
  } finally {
    trace.end({ changes: rows.length, hasFailed });
  }
  return true;
}
