import type { Connection, DatabaseTransaction } from '../../postgres/database.ts';

/** How far a file has been recorded. */
export interface FilePosition {
  device: string;
  inode: string;
  /** A hash of the first bytes, and how many they are. */
  head: string;
  headBytes: number;
  /** Bytes up to the end of the last line that was recorded. */
  recorded: number;
}

export async function findPosition(db: Connection, tenant: string, path: string): Promise<FilePosition | undefined> {
  return await db
    .selectFrom('followed_file')
    .select(['device', 'inode', 'head', 'head_bytes as headBytes', 'recorded'])
    .where(({ and }) => and({ tenant, path }))
    .executeTakeFirst();
}

/** Moves a position. Returns false where it is not `from` any more: another process follows the file. */
export async function movePosition(
  transaction: DatabaseTransaction,
  tenant: string,
  path: string,
  { from, to }: { from: FilePosition | undefined; to: FilePosition },
): Promise<boolean> {
  const { headBytes, ...rest } = to;
  const row = { ...rest, head_bytes: headBytes };
  if (from === undefined) {
    const inserted = await transaction
      .insertInto('followed_file')
      .values({ tenant, path, ...row })
      .onConflict((conflict) => conflict.columns(['tenant', 'path']).doNothing())
      .executeTakeFirst();
    return inserted.numInsertedOrUpdatedRows === 1n;
  }
  const moved = await transaction
    .updateTable('followed_file')
    .set(row)
    .where(({ and }) =>
      and({ tenant, path, device: from.device, inode: from.inode, head: from.head, recorded: from.recorded }),
    )
    .executeTakeFirst();
  return moved.numUpdatedRows === 1n;
}

interface FollowedFileTable {
  tenant: string;
  path: string;
  device: string;
  inode: string;
  head: string;
  head_bytes: number;
  recorded: number;
}

declare module '../../postgres/tables.ts' {
  interface Tables {
    followed_file: FollowedFileTable;
  }
}
