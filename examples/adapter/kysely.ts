import { CompiledQuery, type Kysely, type Transaction } from 'kysely';
import { type TellOptions, tellAuthor } from './author.ts';

/** Runs the work in a transaction whose changes are the current author's. */
export async function inTransaction<Tables, Result>(
  db: Kysely<Tables>,
  work: (transaction: Transaction<Tables>) => Promise<Result>,
  options: TellOptions = {},
): Promise<Result> {
  return await db.transaction().execute(async (transaction) => {
    await tellAuthor(async (text, values) => {
      const { rows } = await transaction.executeQuery<Record<string, unknown>>(CompiledQuery.raw(text, values));
      return { rows };
    }, options);
    return await work(transaction);
  });
}
