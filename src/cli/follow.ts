import { resolve } from 'node:path';
import { foldHistory } from '../history/tallies/fold.ts';
import type { Database } from '../postgres/database.ts';
import type { ValueRules } from '../recording/mapping/mapping.ts';
import { FollowedByAnotherError, FollowGapError, followFile } from '../sources/import/follow-file.ts';
import type { ImportCounts } from '../sources/import/import.ts';
import type { CommandIo } from './command.ts';
import { OperatorError } from './command.ts';

export interface FollowCommand {
  db: Database;
  now: () => number;
  tenant: string;
  file: string;
  rules: ReadonlyMap<string, ValueRules> | undefined;
  acceptGap: boolean;
  signal: AbortSignal;
}

/** `annals import --follow`: records a file as it grows, until the process is asked to stop. Returns the exit code. */
export async function runFollow({ db, tenant, file, ...command }: FollowCommand, io: CommandIo): Promise<number> {
  let folded = 0;
  try {
    const counts = await followFile({
      ...command,
      db,
      tenant,
      path: resolve(file),
      onRejected: (end, reason) => io.tell(`line that ends at byte ${end}: ${reason}`),
      onEvent: (what) => io.tell(`annals import: ${what}`),
      // There may be no service that folds.
      onIdle: async ({ recorded }) => {
        if (recorded === folded) return;
        folded = recorded;
        await foldHistory(db, tenant).catch(() => {});
      },
    });
    io.answer(answerOf(counts));
    return counts.rejected === 0 ? 0 : 1;
  } catch (error) {
    if (error instanceof FollowGapError) throw new OperatorError(`gap: ${error.message}`);
    if (error instanceof FollowedByAnotherError) throw new OperatorError(`${error.message}: ${file}`);
    throw error;
  }
}

function answerOf({ read, recorded, unchanged, duplicate, expired, rejected }: ImportCounts): string {
  return JSON.stringify({ read, recorded, unchanged, duplicate, expired, rejected });
}
