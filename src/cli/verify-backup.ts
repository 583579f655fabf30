import type { Readable } from 'node:stream';
import type { Config } from '../core/config/config.ts';
import { hasCode, OperatorError } from '../core/errors.ts';
import type { BackupManifest } from '../postgres/backup/manifest.ts';
import { BackupReader } from '../postgres/backup/read-backup.ts';
import { Stopped } from './command.ts';
import { findSecretKeys } from './open-database.ts';

/** Reads a backup to its end, without a database. Throws an OperatorError if it is incomplete or was altered. */
export async function verifyBackup(input: Readable, config: Config, signal: AbortSignal): Promise<BackupManifest> {
  const backup = await BackupReader.open(input, { signal });
  backup.useKeys(await findSecretKeys(config));
  for await (const { content } of backup.tables()) for await (const _chunk of content);
  return backup.manifest;
}

/** The error of a command that reads a backup, worded for operators if the file is to blame. */
export function readingFault(error: unknown, stop: AbortSignal): unknown {
  if (stop.aborted) return new Stopped(stop.reason);
  if (hasCode(error, 'ENOENT', 'EACCES', 'EISDIR') && error instanceof Error) {
    return new OperatorError(`the backup cannot be read: ${error.message}`);
  }
  return error;
}
