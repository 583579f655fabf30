import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { type Config, readConfig } from '../../core/config/config.ts';
import { createSealer } from '../../core/sealing.ts';
import { pauseAll } from '../../delivery/subscriptions/pause-all.ts';
import { eraseAgain } from '../../history/erasure/erasures-file.ts';
import type { BackedUpIndex } from '../../postgres/backup/manifest.ts';
import { BackupReader } from '../../postgres/backup/read-backup.ts';
import { checkSchemaOf, type RestoredBackup, restoreBackup } from '../../postgres/backup/restore-backup.ts';
import { createPool } from '../../postgres/connections/pool.ts';
import { createDatabase } from '../../postgres/database.ts';
import { sortIndexStatement } from '../../tenants/custom-entities/sort-indexes.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { findSecretKeys, openDatabase } from '../open-database.ts';
import { ProgressLine } from '../progress-line.ts';
import { readingFault, verifyBackup } from '../verify-backup.ts';
import { closeInTime } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals restore [--erasures FILE] FILE

Restores a backup of this or an earlier version into an empty database, and brings it to
the current schema. With - it reads the backup from stdin. It reads FILE twice: first it checks
the whole backup with the secret key, and then it writes to the database. It checks a backup
from stdin while it restores it. If the restore fails, the database stays empty.
Afterwards all subscriptions are paused, since the other database may deliver them.

The secret key must be the key of the backup: ANNALS_SECRET_KEY, or secret.key in the data
folder. Prints one JSON object: schema (of the backup), createdAt, tables and rows.

  --erasures FILE  carry out the erasures of this file (annals erase --list) that the backup
                   lacks. Start no service before the command has ended. The answer has
                   erased, their number, and failed, those that could not be carried out;
                   the exit code is then 1

Example:
  DATABASE_URL=postgres://annals@db.internal/annals annals restore annals.tar.zst`,

  async run(args, io) {
    const { positionals, values } = parseCommand('restore', {
      args,
      options: { erasures: { type: 'string' } },
      allowPositionals: true,
    });
    const [file, ...others] = positionals;
    if (file === undefined || others.length > 0) throw new UsageError('restore needs one FILE, or -');
    const config = readConfig(io.environment);
    const erasures = values.erasures === undefined ? undefined : await readFile(values.erasures, 'utf8');
    let input: Readable | undefined;
    try {
      if (file !== '-') await verifyBackup(createReadStream(file), { config, signal: io.stop });
      input = file === '-' ? io.stdin : createReadStream(file);
      const { manifest, leftOut, again } = await restore(input, { config, erasures }, io);
      for (const table of leftOut) io.tell(`annals: the table ${table} is none of Annals, and is left out`);
      const { schema, createdAt, tables } = manifest;
      const rows = tables.reduce((all, table) => all + table.rows, 0);
      const erased = again && { erased: again.erased.length, failed: again.failed };
      io.answer(JSON.stringify({ schema, createdAt, tables: tables.length, rows, ...erased }));
      return again === undefined || again.failed.length === 0 ? 0 : 1;
    } catch (error) {
      throw readingFault(error, io.stop);
    } finally {
      input?.destroy();
    }
  },
};

/** Checks the beginning of the backup before it opens the database, which may make a data folder. */
async function restore(
  input: Readable,
  { config, erasures }: { config: Config; erasures: string | undefined },
  io: CommandIo,
): Promise<RestoredBackup & { again?: Awaited<ReturnType<typeof eraseAgain>> }> {
  const backup = await BackupReader.open(input, { signal: io.stop });
  await checkSchemaOf(backup.begin);
  const keys = await findSecretKeys(config);
  const missing = backup.useKeys(keys);
  if (missing > 0) {
    io.tell(`annals: ${missing} older keys of the backup are missing; what only they open stays closed`);
  }
  const database = await openDatabase(config, io.tell);
  const pool = createPool(database.url, { applicationName: 'annals restore', maximum: 2 });
  const progress = new ProgressLine(io.stderr);
  const onProgress = (bytes: number) => progress.show(`${Math.floor(bytes / 1e6)} MB`, undefined);
  try {
    const db = createDatabase(pool);
    const definitionOf = (index: BackedUpIndex) => sortIndexStatement(db, index);
    const restored = await restoreBackup(pool, backup, {
      ...{ signal: io.stop, onProgress, definitionOf },
      afterwards: [pauseAll],
    });
    if (erasures === undefined) return restored;
    const again = await eraseAgain(erasures, { db, sealer: createSealer(keys), now: () => Date.now() });
    return { ...restored, again };
  } finally {
    progress.clear();
    await closeInTime(pool.end());
    await database.release();
  }
}
