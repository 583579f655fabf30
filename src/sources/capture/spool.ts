import { DatabaseSync, type StatementSync } from 'node:sqlite';

/**
 * Records that do not fit in memory, in an unnamed temporary SQLite database, which disappears with the process. Write
 * all records before reading the first.
 */
export class Spool {
  readonly #database = new DatabaseSync('');
  readonly #insert: StatementSync;

  constructor() {
    this.#database.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -8192');
    this.#database.exec('create table record (text text not null); begin');
    this.#insert = this.#database.prepare('insert into record values (?)');
  }

  write(text: string): void {
    this.#insert.run(text);
  }

  /** What was written, in its order. */
  *read(): Generator<string> {
    const written = this.#database.prepare('select text from record order by rowid');
    for (const { text } of written.iterate()) yield String(text);
  }

  close(): void {
    this.#database.close();
  }
}
