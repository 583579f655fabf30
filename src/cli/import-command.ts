import { resolve } from 'node:path';
import { foldHistory } from '../history/tallies/fold.ts';
import { foldAlong } from '../history/tallies/fold-along.ts';
import { analyseHistory, buildHistoryIndexes } from '../history/tallies/statistics.ts';
import type { Database } from '../postgres/database.ts';
import type { ValueRules } from '../recording/mapping/mapping.ts';
import { createRecorder } from '../recording/record-change.ts';
import { FollowedByAnotherError, FollowGapError, followFile } from '../sources/import/follow-file.ts';
import type { ImportCounts } from '../sources/import/import.ts';
import { parseCommand } from './arguments.ts';
import { type Command, type CommandIo, OperatorError, UsageError } from './command.ts';
import { runImport } from './import.ts';
import { requireNamedTenant } from './require-tenant.ts';
import { withDatabase } from './with-database.ts';

export const importCommand: Command = {
  help: `Usage: annals import --tenant T [--mapping FILE] FILE
       annals import --tenant T [--mapping FILE] --follow [--accept-gap] FILE

Records document changes from NDJSON, one JSON object a line; .gz and .zst too, "-" for
stdin. Prints one JSON object with the counts: read, recorded, unchanged, duplicate,
expired, rejected. It rejects an invalid line, prints its number and the reason on stderr,
records the others, and exits with 1. You can run it again at any time, also after a crash:
it records no change twice and loses none.

A line has op (insert, update, replace, delete), entity, entityId and at. These members are
optional: id, name, actor, schemaVersion, related, context, before and after.

With --follow it reads the file while it grows and is rotated, until you stop it. It records
each line once, also after a crash, and waits for the end of an incomplete line. It also
reads rotated files in the same folder (changes.ndjson.1, changes.ndjson-20260115.gz …).
  --accept-gap  continue if the followed file does not exist any more

Example:
  annals import --tenant acme changes.ndjson.gz`,

  async run(args, io) {
    const { values, positionals } = parseCommand('import', {
      args,
      options: {
        tenant: { type: 'string' },
        mapping: { type: 'string' },
        follow: { type: 'boolean', default: false },
        'accept-gap': { type: 'boolean', default: false },
      },
      allowPositionals: true,
    });
    const { tenant } = values;
    const [file, ...others] = positionals;
    if (tenant === undefined) throw new UsageError('import needs --tenant');
    if (file === undefined || others.length > 0) throw new UsageError('import needs one FILE, or - for stdin');
    if (values.follow && (file === '-' || /\.(?:gz|zst)$/.test(file))) {
      throw new UsageError('--follow needs a plain file');
    }
    const acceptGap = values['accept-gap'];
    if (acceptGap && !values.follow) throw new UsageError('--accept-gap belongs to --follow');
    const { stdin, stdout, stderr, stop } = io;
    const rules = values.mapping === undefined ? undefined : await rulesOfFile(values.mapping);
    return await withDatabase(io, async ({ db, now }, watch) => {
      const signal = AbortSignal.any([stop, watch.signal]);
      await requireNamedTenant(db, tenant);
      if (values.follow) {
        const code = await runFollow({ db, now, tenant, file, rules, acceptGap, signal }, io);
        if (watch.reason !== undefined) throw new OperatorError(watch.reason);
        return code;
      }
      const recorder = createRecorder(db, tenant, now);
      const { record, finish } = foldAlong(recorder, () => foldHistory(db, tenant), {
        async ofEntries() {
          // An index is complete only after the last fold, so the table that needs none is first.
          await analyseHistory(db, 'related');
          await buildHistoryIndexes(db);
          await analyseHistory(db, 'entries');
        },
        ofTallies: () => analyseHistory(db, 'tallies'),
      });
      const code = await runImport({ tenant, file, record, rules, stdin, stdout, stderr, signal });
      if (!signal.aborted) await finish();
      if (watch.reason !== undefined) throw new OperatorError(watch.reason);
      return code;
    });
  },
};

/** What reads a mapping is loaded only for one: it takes a fifth of a second of processor time. */
async function rulesOfFile(file: string): Promise<ReadonlyMap<string, ValueRules> | undefined> {
  const { mappingOfFile } = await import('./mapping-file.ts');
  return (await mappingOfFile(file)).entities;
}

interface FollowCommand {
  db: Database;
  now: () => number;
  tenant: string;
  file: string;
  rules: ReadonlyMap<string, ValueRules> | undefined;
  acceptGap: boolean;
  signal: AbortSignal;
}

/** `annals import --follow`: records a file as it grows, until the process is asked to stop. Returns the exit code. */
async function runFollow({ db, tenant, file, ...command }: FollowCommand, io: CommandIo): Promise<number> {
  let folded = 0;
  try {
    const counts = await followFile({
      ...command,
      db,
      tenant,
      path: resolve(file),
      onRejected: (end, reason) => io.tell(`line that ends at byte ${end}: ${reason}`),
      onEvent: (what) => io.tell(`annals import: ${what}`),
      // There may be no service that folds.
      onIdle: async ({ recorded }) => {
        if (recorded === folded) return;
        folded = recorded;
        await foldHistory(db, tenant).catch(() => {});
      },
    });
    io.answer(answerOf(counts));
    return counts.rejected === 0 ? 0 : 1;
  } catch (error) {
    if (error instanceof FollowGapError) throw new OperatorError(`gap: ${error.message}`);
    if (error instanceof FollowedByAnotherError) throw new OperatorError(`${error.message}: ${file}`);
    throw error;
  }
}

function answerOf({ read, recorded, unchanged, duplicate, expired, rejected }: ImportCounts): string {
  return JSON.stringify({ read, recorded, unchanged, duplicate, expired, rejected });
}
