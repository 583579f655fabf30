import { sealedGrantKeys } from '../../access/grants/verify-grant.ts';
import { sealedSigningKeys } from '../../access/oauth/signing-key.ts';
import { sealedIdTokens, sealedRenewals } from '../../access/sessions/people-sessions.ts';
import { sealedTests } from '../../access/sessions/sign-in-test.ts';
import { sealedSubscriptions } from '../../delivery/subscriptions/secrets.ts';
import { sealedAgentKeys } from '../../desk/agents/secrets.ts';
import { sealedOutcomes } from '../../desk/completions/idempotency.ts';
import { sealedToolHeaders } from '../../desk/mcp/headers.ts';
import { sealedSubjects } from '../../history/erasure/subject.ts';
import { type ResealCounts, resealColumn, type SealedColumn } from '../../postgres/reseal.ts';
import { sealedRejectedChanges } from '../../recording/batches/rejected-changes.ts';
import { sealedErasureKey } from '../../recording/erased-changes.ts';
import { sealedConfiguration } from '../../tenants/configuration/secrets.ts';
import { parseCommand, runAction } from '../arguments.ts';
import type { Command, CommandIo } from '../command.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

/** Every sealed column of the schema. */
const sealedColumns: readonly SealedColumn[] = [
  sealedRenewals,
  sealedGrantKeys,
  sealedIdTokens,
  sealedTests,
  sealedAgentKeys,
  sealedConfiguration,
  sealedErasureKey,
  sealedOutcomes,
  sealedRejectedChanges,
  sealedSigningKeys,
  sealedSubjects,
  sealedSubscriptions,
  sealedToolHeaders,
];

export const command: Command = {
  help: `Usage: annals secrets reseal

Completes the rotation of ANNALS_SECRET_KEY. First prepend the new key to the list and
restart every process with it. Then run reseal. Then remove the old key from the list.
Prints one JSON object with the number of values that were re-encrypted (resealed), that
already used the first key (current), and that no key decrypts (unreadable). The exit code
is 1 if any are unreadable.

Example:
  ANNALS_SECRET_KEY=$NEW,$OLD annals secrets reseal`,

  run: runAction('secrets', { reseal }),
};

async function reseal(args: string[], io: CommandIo): Promise<number> {
  parseCommand('secrets reseal', { args, options: {} });
  const counts = await withInterruptibleDatabase(io, async ({ db, sealer }) => {
    const sum: ResealCounts = { resealed: 0, current: 0, unreadable: 0 };
    for (const column of sealedColumns) {
      const { resealed, current, unreadable } = await resealColumn(db, sealer, column);
      sum.resealed += resealed;
      sum.current += current;
      sum.unreadable += unreadable;
      if (unreadable > 0)
        io.tell(`${unreadable} values of ${column.table} are opened by none of the keys; they are left`);
    }
    return sum;
  });
  io.answer(JSON.stringify(counts));
  return counts.unreadable > 0 ? 1 : 0;
}
