import { type TellOptions, tellAuthor } from './author.ts';

/** What an interactive transaction of a generated client has. */
interface PrismaTransaction {
  $queryRawUnsafe<Answer>(text: string, ...values: unknown[]): PromiseLike<Answer>;
}

/** Any generated client. */
interface PrismaClient<Transaction> {
  $transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result>;
}

/** Runs the work in an interactive transaction whose changes are the current author's. */
export async function inTransaction<Transaction extends PrismaTransaction, Result>(
  prisma: PrismaClient<Transaction>,
  work: (transaction: Transaction) => Promise<Result>,
  options: TellOptions = {},
): Promise<Result> {
  return await prisma.$transaction(async (transaction) => {
    await tellAuthor(async (text, values) => {
      const rows = await transaction.$queryRawUnsafe<Record<string, unknown>[]>(text, ...values);
      return { rows };
    }, options);
    return await work(transaction);
  });
}
