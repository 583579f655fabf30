import { DatabaseSync, type StatementSync } from 'node:sqlite';

/** Keys kept in memory, at about 60 bytes each, before they go to disk. */
const maximumInMemory = 500_000;

/**
 * Counts exactly how often each key has come, for any number of keys of 16 bytes, in bounded memory. Beyond the bound, keys go to a temporary
 * database. SQLite makes it without a name, so it ends with the process, also with a killed one.
 */
export class Occurrences {
  readonly #maximum: number;
  /** The counts by the bytes of their keys, each a character. */
  readonly #recent = new Map<string, number>();
  #database: DatabaseSync | undefined;
  #select: StatementSync | undefined;

  constructor(maximum = maximumInMemory) {
    this.#maximum = maximum;
  }

  /** Counts the key, and returns how often it came before. */
  next(key: Buffer): number {
    const text = key.toString('latin1');
    const before = this.#recent.get(text) ?? this.#stored(key);
    this.#recent.set(text, before + 1);
    if (this.#recent.size >= this.#maximum) this.#store();
    return before;
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
  }

  #stored(key: Buffer): number {
    return Number(this.#select?.get(key)?.count ?? 0);
  }

  #store(): void {
    this.#database ??= this.#open();
    const upsert = this.#database.prepare('insert or replace into occurrence (key, count) values (?, ?)');
    this.#database.exec('begin');
    // In key order, SQLite writes a large tree page after page.
    for (const key of [...this.#recent.keys()].sort()) {
      upsert.run(Buffer.from(key, 'latin1'), this.#recent.get(key) ?? 0);
    }
    this.#database.exec('commit');
    this.#recent.clear();
  }

  #open(): DatabaseSync {
    const database = new DatabaseSync('');
    database.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -32768');
    database.exec('create table occurrence (key blob primary key, count integer not null) without rowid');
    this.#select = database.prepare('select count from occurrence where key = ?');
    return database;
  }
}
