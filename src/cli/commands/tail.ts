import { open, readFile, rename } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AnnalsError, hasCode, messageOf, OperatorError } from '../../core/errors.ts';
import { GrowingPause } from '../../core/repeat.ts';
import type { Feed } from '../../history/feed/feed.ts';
import { RestoredCursor } from '../../history/feed/feed-cursor.ts';
import { tlsFailure } from '../../postgres/connections/tls.ts';
import { isUnreachable } from '../../postgres/connections/unreachable.ts';
import type { Position } from '../../recording/positions.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, Stopped, UsageError } from '../command.ts';
import { reportOf } from '../error-report.ts';
import { written } from '../output.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withContext } from '../with-context.ts';

export const command: Command = {
  help: `Usage: annals tail --tenant T [--q Q] [--after CURSOR] [--cursor-file FILE]

Prints the changes of a tenant as they are recorded, as NDJSON, until stopped. It reads the
database of the settings, so restarts of the service do not affect it. While the database is
unreachable it waits, also at the start, and reports on stderr once when it is lost and once
when it is back. A wrong password or database ends it at the start only. Each change that
matches is printed at least once, in the order of positions.

  --q Q               a query of the change history, here without a default window
  --after CURSOR      begin after the cursor of a change, or at start, the oldest change that
                      is kept; default: now
  --cursor-file FILE  store the cursor of the last printed change there, and resume after it;
                      overrides --after

If the database was restored to an earlier state, it reports so on stderr and continues with
the oldest change that is kept; changes printed twice have the same ref.

Examples:
  annals tail --tenant acme --q 'entity:product change:elemMatch(path:price)'
  annals tail --tenant acme --cursor-file acme.cursor >> changes.ndjson`,

  async run(args, io) {
    const { values } = parseCommand('tail', {
      args,
      options: {
        tenant: { type: 'string' },
        q: { type: 'string', default: '' },
        after: { type: 'string', default: 'now' },
        'cursor-file': { type: 'string' },
      },
    });
    const { tenant, q, after } = values;
    if (tenant === undefined) throw new UsageError('tail needs --tenant');
    const file = values['cursor-file'] === undefined ? undefined : resolve(values['cursor-file']);
    return await onceReachable(io, (outage) =>
      withContext(io, async ({ db, feed }, _config, watch) => {
        await requireNamedTenant(db, tenant);
        const signal = AbortSignal.any([io.stop, watch.signal]);
        const kept = file === undefined ? undefined : await readCursor(file);
        const begin = await feed.positionOf(tenant, kept ?? after).catch((error: unknown) => {
          if (kept === undefined || !(error instanceof AnnalsError) || error.status !== 400) throw error;
          throw new OperatorError(`${file} holds no cursor of the feed of ${tenant}. Remove it to start over`);
        });
        outage.end();
        await tail(feed, { tenant, q, begin, file, signal, outage }, io);
        if (watch.reason !== undefined) throw new OperatorError(watch.reason);
        return 0;
      }),
    );
  },
};

/** Milliseconds, at the start. */
const pauses = { min: 500, max: 15_000 };

/** SQLSTATE. */
const undefinedTable = '42P01';

/** Reports on stderr when the database is lost and when it is back, once each. */
class Outage {
  readonly #tell: CommandIo['tell'];
  #isAway = false;
  /** Whether the database was reachable once. */
  hasEnded = false;

  constructor(tell: CommandIo['tell']) {
    this.#tell = tell;
  }

  begin(error: unknown): void {
    if (!this.#isAway) this.#tell(`${reportOf(error, 'tail').lines.join(' ')}. It waits until the database is back.`);
    this.#isAway = true;
  }

  end(): void {
    if (this.#isAway) this.#tell('annals tail: the database can be reached again.');
    this.#isAway = false;
    this.hasEnded = true;
  }
}

/**
 * Retries the work with growing pauses until the database was reachable once. From then on only the feed retries: it
 * does not migrate, so an operator can replace the database with an empty one and restore a backup into it.
 */
async function onceReachable(io: CommandIo, work: (outage: Outage) => Promise<number>): Promise<number> {
  const pause = new GrowingPause({ ...pauses, random: Math.random });
  const outage = new Outage(io.tell);
  for (;;) {
    try {
      return await work(outage);
    } catch (error) {
      if (io.stop.aborted || outage.hasEnded || !mayComeBack(error)) throw error;
      outage.begin(error);
      await sleep(pause.next(), undefined, { signal: io.stop }).catch(() => {});
      if (io.stop.aborted) throw new Stopped(io.stop.reason);
    }
  }
}

/** Whether waiting may help at the start: not with a wrong password, database or certificate. */
function mayComeBack(error: unknown): boolean {
  if (!(error instanceof Error) || tlsFailure(error) !== undefined) return false;
  const code = 'code' in error ? String(error.code) : '';
  return !/^(?:28|3D)/.test(code) && (isUnreachable(error) || mayComeBack(error.cause));
}

/** Whether a running tail has lost the database. A database without tables may be about to be restored. */
function isLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return isUnreachable(error) || hasCode(error, undefinedTable) || isLost(error.cause);
}

interface Tail {
  readonly tenant: string;
  readonly q: string;
  readonly begin: Position;
  readonly file: string | undefined;
  readonly signal: AbortSignal;
  readonly outage: Outage;
}

/** Limits of a read: what is printed again if the process is killed before it has stored the cursor. */
const portion = { maxItems: 1_000, maxBytes: 1024 * 1024 };

async function tail(feed: Feed, { tenant, q, begin, file, signal, outage }: Tail, io: CommandIo): Promise<void> {
  let after = begin;
  const observer = {
    onSuccess: () => outage.end(),
    onFailure: (error: unknown) => {
      if (isLost(error)) outage.begin(error);
    },
  };
  // A tail that started at now and stopped before the first change resumes here.
  if (file !== undefined) await writeCursor(file, feed.cursorOf(tenant, after));
  while (!signal.aborted) {
    try {
      for await (const { items, cursor } of feed.portions(tenant, {
        q,
        withContext: false,
        after,
        ...portion,
        signal,
        observer,
      })) {
        // The cursor follows what was printed. The end of the process reports a failed write.
        const fault = await written(io.stdout, items.map(({ text }) => `${text}\n`).join(''));
        if (fault !== undefined) return;
        if (file !== undefined) await writeCursor(file, cursor);
      }
    } catch (error) {
      if (!(error instanceof RestoredCursor)) throw error;
      outage.end();
      io.tell(
        'annals tail: the database was restored to an earlier state. It continues with the oldest change that is kept.',
      );
      after = error.oldestPosition;
    }
  }
}

async function readCursor(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim() || undefined;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw new OperatorError(`the cursor file ${file} cannot be read: ${messageOf(error)}`);
  }
}

/** Atomic: after a crash the file has the old cursor or the new one. */
async function writeCursor(file: string, cursor: string): Promise<void> {
  const draft = `${file}.new`;
  try {
    const handle = await open(draft, 'w', 0o600);
    try {
      await handle.writeFile(`${cursor}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    const reason = messageOf(error);
    throw new OperatorError(`the cursor cannot be stored in ${dirname(file)}: ${reason}`);
  }
}
