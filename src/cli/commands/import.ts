import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Readable } from 'node:stream';
import { hasCode, messageOf, OperatorError } from '../../core/errors.ts';
import type { Sealer } from '../../core/sealing.ts';
import { foldHistory } from '../../history/upkeep/fold.ts';
import { foldAlong } from '../../history/upkeep/fold-along.ts';
import { analyseHistory, buildHistoryIndexes } from '../../history/upkeep/statistics.ts';
import type { Database } from '../../postgres/database.ts';
import type { RecordChanges } from '../../recording/change.ts';
import type { ValueRules } from '../../recording/mapping/mapping.ts';
import { createRecorder } from '../../recording/record-change.ts';
import { followFile } from '../../sources/import/follow-file.ts';
import { ImportStoppedError, importChanges } from '../../sources/import/import.ts';
import type { ImportCounts } from '../../sources/import/line-batch.ts';
import { onlyOperand, parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { ProgressLine } from '../progress-line.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals import --tenant T [--mapping FILE] FILE
       annals import --tenant T [--mapping FILE] --follow [--accept-gap] FILE

Records document changes from NDJSON, one JSON object a line, also compressed (.gz, .zst);
- is stdin. Prints one JSON object with the counts: read, recorded, unchanged, duplicate,
expired, rejected. Invalid lines are rejected with their number and the reason on stderr; the
others are recorded, and the exit code is 1. Safe to repeat, also after a crash: no change is
recorded twice or lost.

A line has op (insert or create, update, replace, delete), entity, entityId and at. Optional
members: id, name, actor, schemaVersion, related, context, before and after.

With --follow it reads the file as it grows and is rotated, until stopped. It records each
line once, also after a crash, and waits for the end of an incomplete line. Rotated files
in the same folder are read too (changes.ndjson.1, changes.ndjson-20260115.gz …).
  --accept-gap  continue if the followed file no longer exists

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
    if (tenant === undefined) throw new UsageError('import needs --tenant');
    const file = onlyOperand(positionals, 'import needs one FILE, or - for stdin');
    if (values.follow && (file === '-' || /\.(?:gz|zst)$/.test(file))) {
      throw new UsageError('--follow needs a plain file');
    }
    const acceptGap = values['accept-gap'];
    if (acceptGap && !values.follow) throw new UsageError('--accept-gap belongs to --follow');
    const rules = values.mapping === undefined ? undefined : await rulesOfFile(values.mapping);
    return await withDatabase(io, async ({ db, now, sealer }, watch) => {
      const signal = AbortSignal.any([io.stop, watch.signal]);
      await requireNamedTenant(db, tenant);
      if (values.follow) {
        const code = await runFollow({ db, sealer, now, tenant, file, rules, acceptGap, signal }, io);
        if (watch.reason !== undefined) throw new OperatorError(watch.reason);
        return code;
      }
      const recorder = createRecorder(db, tenant, now, sealer);
      const { record, finish } = foldAlong(recorder, () => foldHistory(db, tenant), {
        async ofEntries() {
          // The table without indexes first: theirs are complete only after the last fold.
          await analyseHistory(db, 'related');
          await buildHistoryIndexes(db);
          await analyseHistory(db, 'entries');
        },
        ofTallies: () => analyseHistory(db, 'tallies'),
      });
      const code = await runImport({ tenant, file, record, rules, signal }, io);
      if (!signal.aborted) await finish();
      // An import that stopped early has said why.
      if (watch.reason !== undefined && code === 0) throw new OperatorError(watch.reason);
      return code;
    });
  },
};

/** Loading the reader of mappings takes 0.2 s of processor time, so it is loaded on demand. */
async function rulesOfFile(file: string): Promise<ReadonlyMap<string, ValueRules> | undefined> {
  const { mappingOfFile } = await import('../mapping-file.ts');
  return (await mappingOfFile(file)).entities;
}

interface FileImport {
  tenant: string;
  /** A path, or `-` for stdin. */
  file: string;
  record: RecordChanges;
  /** Masks and ignored fields, by entity. */
  rules?: ReadonlyMap<string, ValueRules> | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * `annals import`: records the changes of a file. Prints the counts as one JSON object on stdout, and each rejected
 * line with its number and the reason on stderr. Returns the exit code: 1 if a line was rejected or the import failed.
 */
export async function runImport(
  { tenant, file, record, rules, signal }: FileImport,
  { stdin, stdout, stderr }: Pick<CommandIo, 'stdin' | 'stdout' | 'stderr'>,
): Promise<number> {
  const progress = new ProgressLine(stderr);
  const tell = (text: string) => {
    progress.clear();
    stderr.write(`${text}\n`);
  };
  const input = await openInput(file, stdin);
  if (typeof input === 'string') {
    tell(`annals import: ${input}`);
    return 1;
  }
  try {
    const counts = await importChanges({
      source: input.source,
      record,
      rules,
      onRejected: (line, reason) => tell(`line ${line}: ${reason}`),
      onProgress: ({ read }) => progress.show(`into ${tenant}: ${read} lines read`, input.share()),
      ...(signal === undefined ? {} : { signal }),
    });
    progress.clear();
    stdout.write(`${answerOf(counts)}\n`);
    return counts.rejected === 0 ? 0 : 1;
  } catch (error) {
    if (!(error instanceof ImportStoppedError)) throw error;
    tell(`annals import: ${error.message}. The changes before are recorded; run the same import again.`);
    stdout.write(`${answerOf(error.counts)}\n`);
    return 1;
  } finally {
    progress.clear();
  }
}

interface Input {
  source: Readable;
  /** The part of the input that has been read, from 0 to 1; undefined if the size is unknown. */
  share(): number | undefined;
}

/** Opens the input. A string says why it cannot be read. */
async function openInput(file: string, stdin: Readable): Promise<Input | string> {
  if (file === '-') return { source: stdin, share: () => undefined };
  try {
    const handle = await open(file);
    const status = await handle.stat();
    if (status.isDirectory()) {
      await handle.close();
      return `${file} is a folder`;
    }
    const source = handle.createReadStream({ highWaterMark: 256 * 1024 });
    return { source, share: () => (status.size === 0 ? undefined : source.bytesRead / status.size) };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return `there is no file ${file}`;
    return `${file} cannot be opened: ${messageOf(error)}`;
  }
}

interface FollowCommand {
  db: Database;
  sealer: Sealer;
  now: () => number;
  tenant: string;
  file: string;
  rules: ReadonlyMap<string, ValueRules> | undefined;
  acceptGap: boolean;
  signal: AbortSignal;
}

/** `annals import --follow`: records a file as it grows, until stopped. Returns the exit code. */
async function runFollow({ db, tenant, file, ...follow }: FollowCommand, io: CommandIo): Promise<number> {
  let folded = 0;
  const counts = await followFile({
    ...follow,
    db,
    tenant,
    path: resolve(file),
    onRejected: (end, reason) => io.tell(`line that ends at byte ${end}: ${reason}`),
    onEvent: (what) => io.tell(`annals import: ${what}`),
    // No service may be running to fold.
    onIdle: async ({ recorded }) => {
      if (recorded === folded) return;
      folded = recorded;
      await foldHistory(db, tenant).catch(() => {});
    },
  });
  io.answer(answerOf(counts));
  return counts.rejected === 0 ? 0 : 1;
}

function answerOf({ read, recorded, unchanged, duplicate, expired, rejected }: ImportCounts): string {
  return JSON.stringify({ read, recorded, unchanged, duplicate, expired, rejected });
}
