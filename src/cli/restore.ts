import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { type Config, readConfig } from '../config/config.ts';
import { checkKeys } from '../db/backup/manifest.ts';
import { BackupReader } from '../db/backup/read-backup.ts';
import { checkSchemaOf, type RestoredBackup, restoreBackup } from '../db/backup/restore-backup.ts';
import { createPool } from '../db/connections/pool.ts';
import { hasCode } from '../db/write-once.ts';
import { parseCommand } from './arguments.ts';
import { type Command, type CommandIo, OperatorError, UsageError } from './command.ts';
import { findSecretKeys, openDatabase } from './open-database.ts';
import { ProgressLine } from './progress-line.ts';
import { Stopped } from './stopped.ts';
import { closeInTime } from './with-database.ts';

export const restoreCommand: Command = {
  help: `Usage: annals restore FILE

Restores a backup of this or an earlier version into an empty database, and brings it to
the current schema. With - the backup comes from stdin. It is checked as it is read. Where
anything fails, the database stays empty.

The secret key must be that of the backup: ANNALS_SECRET_KEY, or secret.key in the data
folder. Prints one JSON object: schema, that of the backup, createdAt, tables and rows.

Example:
  DATABASE_URL=postgres://annals@db.internal/annals annals restore annals.tar.zst`,

  async run(args, io) {
    const { positionals } = parseCommand('restore', { args, options: {}, allowPositionals: true });
    const [file, ...others] = positionals;
    if (file === undefined || others.length > 0) throw new UsageError('restore needs one FILE, or -');
    const config = readConfig(io.environment);
    const input = file === '-' ? io.stdin : createReadStream(file);
    try {
      const { manifest, leftOut } = await restore(input, config, io);
      for (const table of leftOut) io.tell(`annals: the table ${table} is none of Annals, and is left out`);
      const { schema, createdAt, tables } = manifest;
      const rows = tables.reduce((all, table) => all + table.rows, 0);
      io.answer(JSON.stringify({ schema, createdAt, tables: tables.length, rows }));
      return 0;
    } catch (error) {
      if (io.stop.aborted) throw new Stopped(io.stop.reason);
      if (hasCode(error, 'ENOENT', 'EACCES', 'EISDIR') && error instanceof Error) {
        throw new OperatorError(`the backup cannot be read: ${error.message}`);
      }
      throw error;
    } finally {
      input.destroy();
    }
  },
};

/** Checks the beginning of the backup before it opens the database, which may make a data folder. */
async function restore(input: Readable, config: Config, io: CommandIo): Promise<RestoredBackup> {
  const backup = await BackupReader.open(input, io.stop);
  await checkSchemaOf(backup.begin);
  const missing = checkKeys(backup.begin, await findSecretKeys(config));
  if (missing > 0) {
    io.tell(`annals: ${missing} older keys of the backup are missing; what only they open stays closed`);
  }
  const database = await openDatabase(config, io.tell);
  const pool = createPool(database.url, { applicationName: 'annals restore', maximum: 2 });
  const progress = new ProgressLine(io.stderr);
  const onProgress = (bytes: number) => progress.show(`${Math.floor(bytes / 1e6)} MB`, undefined);
  try {
    return await restoreBackup(pool, backup, { signal: io.stop, onProgress });
  } finally {
    progress.clear();
    await closeInTime(pool.end());
    await database.release();
  }
}
