import { sql } from 'kysely';
import type pg from 'pg';
import { countSessions } from '../console/session-figures.ts';
import { readOpenJobs } from '../desk/jobs/queue-figures.ts';
import { readWaiting } from '../desk/mail/mail-figures.ts';
import { readPendingChanges } from '../history/tallies/pending.ts';
import { type DatabaseFigure, measureDatabase } from '../metrics/database-figures.ts';
import { capturePositionFigure, installationFigures } from '../metrics/installation.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { createSideConnection } from '../postgres/connections/side-connection.ts';
import type { Database } from '../postgres/database.ts';
import { beginSource, connectSource, type Source } from '../postgres/source/source.ts';
import { WriteProbe } from '../postgres/write-probe.ts';
import { countRejected } from '../recording/batches/rejected-figures.ts';
import type { CaptureFigures } from '../sources/capture/figures.ts';
import { readPositionAge } from '../sources/capture/position.ts';
import { readOutboxFigures } from '../sources/outbox/outbox-rows.ts';

/** Milliseconds that one figure may take the database. */
const statementLimit = 1_500;

/**
 * Measures what only the database knows, over all tenants and processes. Of several processes on one port, one does so.
 * Returns the function that closes the connection.
 */
export function measureInstallation(metrics: Metrics, databaseUrl: string): () => Promise<void> {
  return measureBeside(metrics, databaseUrl, (db) => {
    const writes = new WriteProbe({ run: (statements) => sql.raw(statements).execute(db) });
    return installationFigures({
      takesWrites: () => writes.takesWrites(),
      pendingChanges: () => readPendingChanges(db),
      openJobs: () => readOpenJobs(db),
      waitingMails: () => readWaiting(db),
      rejectedChanges: () => countRejected(db),
      consoleSessions: () => countSessions(db),
      capturePositionAge: () => readPositionAge(db),
    });
  });
}

/** Measures how far capture is. Returns the function that closes the connection to the database of Annals. */
export function measureCapture(metrics: Metrics, figures: CaptureFigures, databaseUrl: string): () => Promise<void> {
  metrics.beforeRead(() => {
    metrics.set('annals_capture_lag_seconds', {}, figures.lagMilliseconds / 1000);
    metrics.set('annals_capture_lag_bytes', {}, figures.lagBytes);
    metrics.set('annals_capture_slot_bytes', {}, figures.slotBytes);
    const { slotSafeBytes } = figures;
    if (slotSafeBytes === undefined) metrics.clear('annals_capture_slot_safe_bytes');
    else metrics.set('annals_capture_slot_safe_bytes', {}, slotSafeBytes);
  });
  return measureBeside(metrics, databaseUrl, (db) => [capturePositionFigure(() => readPositionAge(db))]);
}

/** Measures what waits in the outbox of a source. */
export function measureRelay(metrics: Metrics, source: Source): void {
  let client: pg.Client | undefined;
  let time = 0;
  measureDatabase(metrics, {
    up: 'annals_relay_source_up',
    begin: async () => {
      time += 1;
      const asked = time;
      const connected = await connectSource(source, 'transactions');
      if (asked !== time) {
        // The time of the source was over before it answered.
        await connected.end();
        return;
      }
      client = connected;
      await beginSource(client);
      await client.query(`set local statement_timeout = ${statementLimit}`);
    },
    figures: [
      {
        names: ['annals_relay_pending_changes', 'annals_relay_oldest_seconds'],
        read: async (set) => {
          if (client === undefined) return;
          const { changes, oldest } = await readOutboxFigures(client);
          set('annals_relay_pending_changes', {}, changes);
          set('annals_relay_oldest_seconds', {}, oldest);
        },
      },
    ],
    end: () => {
      // The driver closes the socket at once where a statement still runs.
      client?.end().catch(() => {});
      client = undefined;
      time += 1;
    },
  });
}

function measureBeside(
  metrics: Metrics,
  databaseUrl: string,
  figuresOf: (db: Database) => readonly DatabaseFigure[],
): () => Promise<void> {
  const { db, cut, end } = createSideConnection(databaseUrl, { applicationName: 'annals metrics', statementLimit });
  measureDatabase(metrics, {
    up: 'annals_database_up',
    begin: () => sql`select 1`.execute(db),
    figures: figuresOf(db),
    end: (isLate) => {
      if (isLate) cut();
    },
  });
  return end;
}
