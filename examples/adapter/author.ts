import { AsyncLocalStorage } from 'node:async_hooks';

/** Who makes the changes of the current request, and under which circumstances. */
export interface Author {
  actor: string;
  /** At most 4 KiB of JSON and 4 levels. */
  context?: Record<string, unknown>;
}

const current = new AsyncLocalStorage<Author>();

/**
 * Runs the work of a request as this author. Everything that it awaits sees the author too.
 *
 * @example
 * app.use((request, _response, next) => actAs({ actor: request.user.name, context: { ip: request.ip } }, next));
 */
export function actAs<Result>(author: Author, work: () => Result): Result {
  return current.run(author, work);
}

export interface TellOptions {
  /**
   * Also write the message that `annals capture` reads. It gives the transaction an id, and fails on a standby. Leave it out where only
   * the triggers of `annals outbox` record.
   */
  capture?: boolean;
}

/** Runs a statement in the transaction. */
export type RunStatement = (text: string, values: unknown[]) => Promise<{ rows: Record<string, unknown>[] }>;

/**
 * Tells Annals the author, at the beginning of a transaction. Does nothing without an author. Throws outside of a transaction: there a
 * local setting is gone at once, and one of the session would leak through a pooler to the next user.
 */
export async function tellAuthor(run: RunStatement, { capture = false }: TellOptions = {}): Promise<void> {
  const author = current.getStore();
  if (author === undefined) return;
  const context = author.context === undefined ? '' : JSON.stringify(author.context);
  // As text, because Prisma cannot read the type pg_lsn.
  const message = capture ? `, pg_logical_emit_message(true, 'annals.actor', $3)::text` : '';
  await run(
    `select set_config('annals.actor', $1, true), set_config('annals.context', $2, true)${message}`,
    capture ? [author.actor, context, JSON.stringify(author)] : [author.actor, context],
  );
  // Outside of a transaction the local setting has ended with its statement.
  const { rows } = await run(`select current_setting('annals.actor', true) = $1 as inside`, [author.actor]);
  if (rows[0]?.inside !== true) throw new Error('tellAuthor must run in a transaction, after BEGIN');
}
