import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { readConfig } from '../../core/config/config.ts';
import { OperatorError } from '../../core/errors.ts';
import type { BackupManifest } from '../../postgres/backup/manifest.ts';
import { writeBackup } from '../../postgres/backup/write-backup.ts';
import { createPool } from '../../postgres/connections/pool.ts';
import { hasCode } from '../../postgres/write-once.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, Stopped, UsageError } from '../command.ts';
import { ProgressLine } from '../progress-line.ts';
import { readingFault, verifyBackup } from '../verify-backup.ts';
import { closeInTime, withCurrentDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals backup FILE
       annals backup verify FILE

Writes a snapshot of the whole database into FILE, while the service runs. With - it writes
to stdout. The backup is a tar archive, compressed with zstd, with a manifest and a folder
for each table. It does not have the secret key: store that in another place. It does not
have sessions, waiting e-mails and the data of other programs either.

FILE appears when the backup is complete, and replaces an older file of that name. Prints
one JSON object: file, schema, createdAt, tables, rows, and bytes before compression. With
- it prints the object to stderr.

verify reads a whole backup, with - from stdin, and needs no database. With the secret key it
checks that the backup is complete and unchanged. If it is not, the exit code is 1. Prints
the same object.

Examples:
  annals backup /backups/annals.tar.zst
  annals backup verify /backups/annals.tar.zst
  annals backup - | ssh backups.internal 'cat > annals.tar.zst'`,

  async run(args, io) {
    const { positionals } = parseCommand('backup', { args, options: {}, allowPositionals: true });
    const [file, ...others] = positionals;
    if (file === 'verify' && others.length > 0) return await verify(others, io);
    if (file === undefined || others.length > 0) throw new UsageError('backup needs one FILE, or -');
    if (file === '-') {
      if ('isTTY' in io.stdout && io.stdout.isTTY)
        throw new UsageError('a backup is no text: send it to a file or a pipe');
      io.tell(JSON.stringify(told('-', await backUp(io, io.stdout))));
    } else {
      io.answer(JSON.stringify(told(file, await intoFile(file, (output) => backUp(io, output)))));
    }
    return 0;
  },
};

async function verify([file, ...others]: string[], io: CommandIo): Promise<number> {
  if (file === undefined || others.length > 0) throw new UsageError('backup verify needs one FILE, or -');
  const input = file === '-' ? io.stdin : createReadStream(file);
  try {
    io.answer(
      JSON.stringify(told(file, await verifyBackup(input, { config: readConfig(io.environment), signal: io.stop }))),
    );
    return 0;
  } catch (error) {
    throw readingFault(error, io.stop);
  } finally {
    input.destroy();
  }
}

async function backUp(io: CommandIo, output: Writable): Promise<BackupManifest> {
  return await withCurrentDatabase(io, async ({ url, secretKeys, watch }) => {
    const pool = createPool(url, { applicationName: 'annals backup', maximum: 1 });
    const progress = new ProgressLine(io.stderr);
    const signal = AbortSignal.any([io.stop, watch.signal]);
    const onProgress = (bytes: number) => progress.show(`${Math.floor(bytes / 1e6)} MB`, undefined);
    try {
      return await writeBackup(pool, output, { secretKeys, now: Date.now(), signal, onProgress });
    } catch (error) {
      if (io.stop.aborted) throw new Stopped(io.stop.reason);
      if (watch.reason !== undefined) throw new OperatorError(watch.reason);
      if (hasCode(error, 'EPIPE'))
        throw new OperatorError('the reader of the backup has gone; the backup is not complete');
      if (hasCode(error, ...writingFaults) && error instanceof Error)
        throw new OperatorError(`the backup cannot be written: ${error.message}`);
      throw error;
    } finally {
      progress.clear();
      await closeInTime(pool.end());
    }
  });
}

const writingFaults = ['ENOENT', 'EACCES', 'ENOTDIR', 'EISDIR', 'ENOSPC', 'EFBIG', 'EDQUOT', 'EROFS'];

/** Writes beside the file first, so that nobody finds half a backup under its name. Nobody else may read it. */
async function intoFile<Result>(path: string, write: (output: Writable) => Promise<Result>): Promise<Result> {
  const draft = `${path}.${randomUUID()}.partial`;
  try {
    const file = await open(draft, 'wx', 0o600);
    try {
      const output = file.createWriteStream({ flush: true });
      const result = await write(output);
      output.end();
      await finished(output);
      await rename(draft, path);
      return result;
    } finally {
      await file.close().catch(() => {});
      await rm(draft, { force: true });
    }
  } catch (error) {
    if (hasCode(error, ...writingFaults) && error instanceof Error) {
      throw new OperatorError(`the backup cannot be written: ${error.message}`);
    }
    throw error;
  }
}

function told(file: string, { schema, createdAt, tables }: BackupManifest) {
  const sum = (of: 'rows' | 'bytes') => tables.reduce((all, table) => all + table[of], 0);
  return { file, schema, createdAt, tables: tables.length, rows: sum('rows'), bytes: sum('bytes') };
}
