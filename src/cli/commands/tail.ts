import { open, readFile, rename } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { AnnalsError } from '../../core/errors.ts';
import { OperatorError } from '../../core/operator-error.ts';
import type { Feed } from '../../history/feed/feed.ts';
import { RestoredCursor } from '../../history/feed/feed-cursor.ts';
import type { Position } from '../../history/positions/position-store.ts';
import { hasCode } from '../../postgres/write-once.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { written } from '../output.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withContext } from '../with-context.ts';

export const command: Command = {
  help: `Usage: annals tail --tenant T [--q Q] [--after CURSOR] [--cursor-file FILE]

Prints the changes of a tenant as they are recorded, as NDJSON, until you stop it. It reads
the database of the settings, as "annals import" does, so it goes on while the service is
restarted; while the database is away it waits. Each change that matches comes at least once,
in the order of positions.

  --q Q               a query of the change history; it has no default window here
  --after CURSOR      begin behind the cursor of a change, or with start (the oldest change
                      that is kept); default: now
  --cursor-file FILE  keep the cursor of what was printed there, and begin behind it; it wins
                      over --after

Where the database was restored to an earlier state, it says so on stderr and goes on from
the oldest change that is kept: what comes twice has the same ref.

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
    return await withContext(io, async ({ db, feed }, _config, watch) => {
      await requireNamedTenant(db, tenant);
      const signal = AbortSignal.any([io.stop, watch.signal]);
      const kept = file === undefined ? undefined : await readCursor(file);
      const begin = await feed.positionOf(tenant, kept ?? after).catch((error: unknown) => {
        if (kept === undefined || !(error instanceof AnnalsError) || error.status !== 400) throw error;
        throw new OperatorError(`${file} holds no cursor of the feed of ${tenant}. Move it away to begin anew`);
      });
      await tail(feed, { tenant, q, begin, file, signal }, io);
      if (watch.reason !== undefined) throw new OperatorError(watch.reason);
      return 0;
    });
  },
};

interface Tail {
  readonly tenant: string;
  readonly q: string;
  readonly begin: Position;
  readonly file: string | undefined;
  readonly signal: AbortSignal;
}

/** Of one read: what is printed again where the process is killed before it has noted the cursor. */
const portion = { maxItems: 1_000, maxBytes: 1024 * 1024 };

async function tail(feed: Feed, { tenant, q, begin, file, signal }: Tail, io: CommandIo): Promise<void> {
  let after = begin;
  // Whoever begins with now, and is stopped before the first change, goes on from here.
  if (file !== undefined) await writeCursor(file, feed.cursorOf(tenant, after));
  while (!signal.aborted) {
    try {
      for await (const { items, cursor } of feed.portions(tenant, {
        q,
        withContext: false,
        after,
        ...portion,
        signal,
      })) {
        // The cursor is that of what was printed. The end of the process reports a failed write.
        const fault = await written(io.stdout, items.map(({ text }) => `${text}\n`).join(''));
        if (fault !== undefined) return;
        if (file !== undefined) await writeCursor(file, cursor);
      }
    } catch (error) {
      if (!(error instanceof RestoredCursor)) throw error;
      io.tell(
        'annals tail: the database was restored to an earlier state. It goes on from the oldest change that is kept.',
      );
      after = await feed.positionOf(tenant, error.oldest);
    }
  }
}

async function readCursor(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim() || undefined;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw new OperatorError(
      `the cursor file ${file} cannot be read: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** The file has the old cursor or the new one, whatever happens meanwhile. */
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
    const reason = error instanceof Error ? error.message : error;
    throw new OperatorError(`the cursor cannot be kept in ${dirname(file)}: ${reason}`);
  }
}
