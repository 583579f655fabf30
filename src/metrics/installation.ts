import type { DatabaseFigure } from './database-figures.ts';

/** What the modules read from the database of the installation. */
export interface InstallationReaders {
  readonly takesWrites: () => Promise<boolean>;
  /** The changes that are not folded yet; `oldest` identifies the oldest row of a tenant. */
  readonly pendingChanges: () => Promise<readonly { tenant: string; changes: number; oldest: number }[]>;
  /** `oldest` is in seconds. */
  readonly openJobs: () => Promise<readonly { type: string; state: string; count: number; oldest: number }[]>;
  readonly waitingMails: () => Promise<{ count: number; oldest: number }>;
  readonly rejectedChanges: () => Promise<number>;
  readonly consoleSessions: () => Promise<number>;
  /** In seconds; undefined where there is no capture. */
  readonly capturePositionAge: () => Promise<number | undefined>;
}

/** The figures of the whole installation. Every process that is asked tells the same. */
export function installationFigures(readers: InstallationReaders): DatabaseFigure[] {
  const age = new AgeOfOldest();
  return [
    {
      names: ['annals_database_writable'],
      read: async (set) => set('annals_database_writable', {}, (await readers.takesWrites()) ? 1 : 0),
    },
    {
      names: ['annals_pending_changes', 'annals_pending_oldest_seconds'],
      async read(set) {
        const pending = await readers.pendingChanges();
        const changes = pending.reduce((sum, one) => sum + one.changes, 0);
        set('annals_pending_changes', {}, changes);
        set('annals_pending_oldest_seconds', {}, age.seconds(pending));
      },
    },
    {
      names: ['annals_jobs', 'annals_job_oldest_seconds'],
      async read(set) {
        for (const { type, state, count, oldest } of await readers.openJobs()) {
          set('annals_jobs', { type, state }, count);
          set('annals_job_oldest_seconds', { type, state }, oldest);
        }
      },
    },
    {
      names: ['annals_mails_waiting', 'annals_mail_oldest_seconds'],
      async read(set) {
        const { count, oldest } = await readers.waitingMails();
        set('annals_mails_waiting', {}, count);
        set('annals_mail_oldest_seconds', {}, oldest);
      },
    },
    {
      names: ['annals_rejected_changes'],
      read: async (set) => set('annals_rejected_changes', {}, await readers.rejectedChanges()),
    },
    {
      names: ['annals_console_sessions'],
      read: async (set) => set('annals_console_sessions', {}, await readers.consoleSessions()),
    },
    capturePositionFigure(readers.capturePositionAge),
  ];
}

/** Only an installation that captures has this figure. */
export function capturePositionFigure(readAge: () => Promise<number | undefined>): DatabaseFigure {
  return {
    names: ['annals_capture_position_age_seconds'],
    async read(set) {
      const age = await readAge();
      if (age !== undefined) set('annals_capture_position_age_seconds', {}, age);
    },
  };
}

/** Rows of changes have no time of their own, so the age of a row counts from when it was first seen as the oldest. */
class AgeOfOldest {
  #seen = new Map<string, { oldest: number; since: number }>();

  seconds(pending: readonly { tenant: string; oldest: number }[]): number {
    const now = performance.now();
    const seen = new Map<string, { oldest: number; since: number }>();
    for (const { tenant, oldest } of pending) {
      const before = this.#seen.get(tenant);
      seen.set(tenant, before?.oldest === oldest ? before : { oldest, since: now });
    }
    this.#seen = seen;
    return Math.max(0, ...[...seen.values()].map(({ since }) => (now - since) / 1000));
  }
}
