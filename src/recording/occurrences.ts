import { DatabaseSync, type StatementSync } from 'node:sqlite';

/** Lines remembered in memory, at about 100 bytes each, before they go to disk. */
const maximumInMemory = 200_000;

/**
 * Counts how often each of any number of keys has come, exactly, in memory that does not grow: what is too much for it
 * goes to a temporary database, which SQLite makes without a name, so that it is gone with the process, even a killed one.
 */
export class Occurrences {
  readonly #maximum: number;
  #recent = new Map<string, number>();
  #database: DatabaseSync | undefined;
  #select: StatementSync | undefined;

  constructor(maximum = maximumInMemory) {
    this.#maximum = maximum;
  }

  /** How often the key has come before; this time counts from now on. */
  next(key: Buffer): number {
    const name = key.toString('latin1');
    const before = this.#recent.get(name) ?? this.#stored(key);
    this.#recent.set(name, before + 1);
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
    // In the order of the tree, so that a large one is written page after page.
    for (const [name, count] of [...this.#recent].sort(([one], [other]) => (one < other ? -1 : 1))) {
      upsert.run(Buffer.from(name, 'latin1'), count);
    }
    this.#database.exec('commit');
    this.#recent = new Map();
  }

  #open(): DatabaseSync {
    const database = new DatabaseSync('');
    database.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -32768');
    database.exec('create table occurrence (key blob primary key, count integer not null) without rowid');
    this.#select = database.prepare('select count from occurrence where key = ?');
    return database;
  }
}
