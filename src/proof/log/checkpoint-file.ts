import { chmodSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { OperatorError } from '../../core/errors.ts';

/** The newest checkpoint that a signer gave out for a log. */
export interface NewestCheckpoint {
  readonly size: number;
  readonly root: Buffer;
  /** The whole note. */
  readonly note: string;
}

// "annals checkpoints" as a number: SQLite keeps it for the program that made a file.
const applicationId = 0x616e6c63;

/**
 * The newest checkpoint of each log, in an SQLite file of the signer: a log's own key, or a witness. Processes that
 * share it exclude each other. What `advance` answered with true is on disk.
 */
export class CheckpointFile {
  readonly #db: DatabaseSync;

  private constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Opens the file, or makes it (mode 600). Throws an OperatorError for a file of something else. */
  static open(path: string): CheckpointFile {
    const db = openOrThrow(path);
    try {
      // Extra: a journal that was deleted does not come back after a power failure.
      db.exec('pragma busy_timeout = 10000; pragma synchronous = extra; begin immediate');
      const known = db.prepare('pragma application_id').get()?.application_id;
      const tables = db.prepare('select count(*) as count from sqlite_schema').get()?.count;
      if (known !== applicationId && (known !== 0 || tables !== 0)) throw notOurs(path);
      db.exec(`pragma application_id = ${applicationId};
        create table if not exists checkpoint (
          origin text primary key, size integer not null, root blob not null, note text not null
        ) strict, without rowid;
        commit`);
      chmodSync(path, 0o600);
      return new CheckpointFile(db);
    } catch (error) {
      db.close();
      throw error instanceof OperatorError ? error : notOurs(path, error);
    }
  }

  newest(origin: string): NewestCheckpoint | undefined {
    const row = this.#db.prepare('select size, root, note from checkpoint where origin = ?').get(origin);
    if (row === undefined) return undefined;
    return { size: Number(row.size), root: Buffer.from(row.root as Uint8Array), note: String(row.note) };
  }

  /**
   * Puts `to` in the place of `from` (undefined: the log has none yet). False where the newest checkpoint is another
   * one by now: then nothing is stored, and `to` must not leave the process.
   */
  advance(origin: string, from: NewestCheckpoint | undefined, to: NewestCheckpoint): boolean {
    const { changes } =
      from === undefined
        ? this.#db
            .prepare('insert into checkpoint (origin, size, root, note) values (?, ?, ?, ?) on conflict do nothing')
            .run(origin, to.size, to.root, to.note)
        : this.#db
            .prepare('update checkpoint set size = ?, root = ?, note = ? where origin = ? and size = ? and root = ?')
            .run(to.size, to.root, to.note, origin, from.size, from.root);
    return changes === 1;
  }

  close(): void {
    this.#db.close();
  }
}

function openOrThrow(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path);
  } catch (error) {
    throw new OperatorError(`cannot open ${path}, where the newest checkpoints are kept`, { cause: error });
  }
}

function notOurs(path: string, cause?: unknown): OperatorError {
  return new OperatorError(`${path} is no file of newest checkpoints, or cannot be written`, { cause });
}
