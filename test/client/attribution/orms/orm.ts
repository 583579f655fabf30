/** What an application does with the table `items`, in the words of its library. */
export interface Statements {
  read(item: number): Promise<unknown>;
  insert(item: number): Promise<unknown>;
  update(item: number, note: string): Promise<unknown>;
  /** The items from `first` to `last`, in one statement. */
  updateAll(first: number, last: number, note: string): Promise<unknown>;
  /** An insert written as SQL. */
  raw(item: number): Promise<unknown>;
}

export interface Transaction extends Statements {
  /** In a savepoint, rolled back if `run` throws. */
  nested(run: (transaction: Statements) => Promise<void>): Promise<void>;
}

/** A library on a pool of at most 4 connections. */
export interface Orm extends Statements {
  transaction(run: (transaction: Transaction) => Promise<void>): Promise<void>;
  close(): Promise<unknown>;
}

/** Opens the library as its page of the documentation says. */
export type OpenOrm = (url: string) => Promise<Orm>;
