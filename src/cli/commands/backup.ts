import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { readConfig } from '../../core/config/config.ts';
import { hasCode, OperatorError } from '../../core/errors.ts';
import type { BackupManifest } from '../../postgres/backup/manifest.ts';
import { writeBackup } from '../../postgres/backup/write-backup.ts';
import { onlyOperand, parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, Stopped, UsageError } from '../command.ts';
import { ProgressLine } from '../progress-line.ts';
import { readingFault, verifyBackup } from '../verify-backup.ts';
import { withCurrentDatabase, withPool } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals backup FILE
       annals backup verify FILE

Writes a snapshot of the whole database to FILE while the service runs; - is stdout. The
backup is a tar archive, compressed with zstd, with a manifest and a folder for each table.
It does not contain the secret key, so store that elsewhere. Sessions, queued e-mails and
the data of other programs are left out too.

FILE appears once the backup is complete, and replaces an older file of that name. Prints
one JSON object: file, schema, createdAt, tables, rows, and bytes before compression; to
stderr if FILE is -.

verify checks with the secret key that a backup is complete and unaltered, without a
database; - is stdin. The exit code is 1 if it is not. Prints the same object.

Examples:
  annals backup /backups/annals.tar.zst
  annals backup verify /backups/annals.tar.zst
  annals backup - | ssh backups.internal 'cat > annals.tar.zst'`,

  async run(args, io) {
    const { positionals } = parseCommand('backup', { args, options: {}, allowPositionals: true });
    if (positionals[0] === 'verify' && positionals.length > 1) return await verify(positionals.slice(1), io);
    const file = onlyOperand(positionals, 'backup needs one FILE, or -');
    if (file === '-') {
      if ('isTTY' in io.stdout && io.stdout.isTTY)
        throw new UsageError('a backup is binary: redirect it to a file or a pipe');
      io.tell(summaryOf('-', await backUp(io, io.stdout)));
    } else {
      io.answer(summaryOf(file, await intoFile(file, (output) => backUp(io, output))));
    }
    return 0;
  },
};

async function verify(operands: string[], io: CommandIo): Promise<number> {
  const file = onlyOperand(operands, 'backup verify needs one FILE, or -');
  const input = file === '-' ? io.stdin : createReadStream(file);
  try {
    io.answer(summaryOf(file, await verifyBackup(input, readConfig(io.environment), io.stop)));
    return 0;
  } catch (error) {
    throw readingFault(error, io.stop);
  } finally {
    input.destroy();
  }
}

async function backUp(io: CommandIo, output: Writable): Promise<BackupManifest> {
  return await withCurrentDatabase(io, async ({ url, secretKeys, watch }) => {
    const progress = new ProgressLine(io.stderr);
    const signal = AbortSignal.any([io.stop, watch.signal]);
    const onProgress = (bytes: number) => progress.show(`${Math.floor(bytes / 1e6)} MB`, undefined);
    try {
      return await withPool(url, { applicationName: 'annals backup', maximum: 1 }, (pool) =>
        writeBackup(pool, output, { secretKeys, now: Date.now(), signal, onProgress }),
      );
    } catch (error) {
      if (io.stop.aborted) throw new Stopped(io.stop.reason);
      if (watch.reason !== undefined) throw new OperatorError(watch.reason);
      if (hasCode(error, 'EPIPE'))
        throw new OperatorError('the reader of the backup has gone; the backup is not complete');
      throw writingFault(error);
    } finally {
      progress.clear();
    }
  });
}

/** Renames the file into place, so that half a backup never has its name. Only its owner may read it. */
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
    throw writingFault(error);
  }
}

const writingFaults = ['ENOENT', 'EACCES', 'ENOTDIR', 'EISDIR', 'ENOSPC', 'EFBIG', 'EDQUOT', 'EROFS'];

function writingFault(error: unknown): unknown {
  return hasCode(error, ...writingFaults) && error instanceof Error
    ? new OperatorError(`the backup cannot be written: ${error.message}`)
    : error;
}

function summaryOf(file: string, { schema, createdAt, tables }: BackupManifest): string {
  const sum = (of: 'rows' | 'bytes') => tables.reduce((all, table) => all + table[of], 0);
  return JSON.stringify({ file, schema, createdAt, tables: tables.length, rows: sum('rows'), bytes: sum('bytes') });
}
