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
import { createDatabase } from '../../postgres/database.ts';
import { sortIndexStatement } from '../../tenants/custom-entities/sort-indexes.ts';
import { onlyOperand, parseCommand } from '../arguments.ts';
import type { Command, CommandIo } from '../command.ts';
import { findSecretKeys, openDatabase } from '../open-database.ts';
import { ProgressLine } from '../progress-line.ts';
import { readingFault, verifyBackup } from '../verify-backup.ts';
import { withPool } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals restore [--erasures FILE] FILE

Restores a backup of this or an earlier version into an empty database, and migrates it to
the current schema. It reads FILE twice: to check the whole backup with the secret key, and to
write the database. - is stdin, which is checked while it is restored. If the restore fails,
the database stays empty. All subscriptions are paused afterwards, since the original database
may still deliver them.

The secret key must be that of the backup: ANNALS_SECRET_KEY, or secret.key in the data
folder. Prints one JSON object: schema (of the backup), createdAt, tables and rows.

  --erasures FILE  repeat the erasures of this file (annals erase --list) that the backup
                   lacks. Start no service until the command has ended. The answer then has
                   erased, their number, and failed, the erasures that failed; if there are
                   any, the exit code is 1

Example:
  DATABASE_URL=postgres://annals@db.internal/annals annals restore annals.tar.zst`,

  async run(args, io) {
    const { positionals, values } = parseCommand('restore', {
      args,
      options: { erasures: { type: 'string' } },
      allowPositionals: true,
    });
    const file = onlyOperand(positionals, 'restore needs one FILE, or -');
    const config = readConfig(io.environment);
    const erasures = values.erasures === undefined ? undefined : await readFile(values.erasures, 'utf8');
    let input: Readable | undefined;
    try {
      if (file !== '-') await verifyBackup(createReadStream(file), config, io.stop);
      input = file === '-' ? io.stdin : createReadStream(file);
      const { manifest, leftOut, again } = await restore(input, { config, erasures }, io);
      for (const table of leftOut) io.tell(`annals: the table ${table} does not belong to Annals and is left out`);
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

/** Checks the backup's first file before it opens the database, which may create a data folder. */
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
    io.tell(`annals: ${missing} older keys of the backup are missing; values sealed with them stay unreadable`);
  }
  const database = await openDatabase(config, io.tell);
  const progress = new ProgressLine(io.stderr);
  const onProgress = (bytes: number) => progress.show(`${Math.floor(bytes / 1e6)} MB`, undefined);
  try {
    return await withPool(database.url, { applicationName: 'annals restore', maximum: 2 }, async (pool) => {
      const db = createDatabase(pool);
      const definitionOf = (index: BackedUpIndex) => sortIndexStatement(db, index);
      const options = { signal: io.stop, onProgress, definitionOf, afterwards: [pauseAll] };
      const restored = await restoreBackup(pool, backup, options);
      if (erasures === undefined) return restored;
      const again = await eraseAgain(erasures, { db, sealer: createSealer(keys), now: () => Date.now() });
      return { ...restored, again };
    });
  } finally {
    progress.clear();
    await database.release();
  }
}
