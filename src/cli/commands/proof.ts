import { readInstallationId } from '../../access/oauth/service.ts';
import { readConfig } from '../../core/config/config.ts';
import { OperatorError } from '../../core/operator-error.ts';
import { makeProofKey } from '../../history/proof/sealing/make-key.ts';
import { openLog } from '../../history/proof/sealing/open-log.ts';
import { hostOfLogs, openSigner } from '../../history/proof/sealing/signer.ts';
import { readLog, tenantsWithLog } from '../../history/proof/tree/log-store.ts';
import { tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import { noSuchAction, parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals proof key FILE
       annals proof vkey --tenant T
       annals proof logs

key makes the key that signs histories, in a new file that only its owner reads. Keep it
outside of the database and its backups. Name the file in ANNALS_PROOF_KEY_FILE and start
the service: from then on it seals the history of every tenant. Beside the file it keeps
FILE.logs, the newest checkpoint of each log; keep the two together, on one machine.

vkey prints the verifier key of the tenant's log. Who has it and one old checkpoint finds
out offline whether a change up to that checkpoint was altered. Give it away early, by a way
that you trust. It stays the same until the key or the log changes.

logs prints a line for each log that is signed, as a witness needs it: log and the verifier
key, without the name of the tenant.

Example:
  annals proof key /etc/annals/proof.key`,

  async run([action, ...args], io) {
    if (action === 'key') return makeKey(args, io);
    if (action === 'vkey') return await printVerifierKey(args, io);
    if (action === 'logs') return await printLogs(args, io);
    throw noSuchAction('proof', action, ['key', 'vkey', 'logs']);
  },
};

function makeKey(args: string[], io: CommandIo): number {
  const { positionals } = parseCommand('proof key', { args, options: {}, allowPositionals: true });
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new UsageError('proof key needs one FILE');
  makeProofKey(file);
  io.answer(JSON.stringify({ file }));
  return 0;
}

async function printVerifierKey(args: string[], io: CommandIo): Promise<number> {
  const { values } = parseCommand('proof vkey', { args, options: { tenant: { type: 'string' } } });
  const { tenant } = values;
  if (tenant === undefined) throw new UsageError('proof vkey needs --tenant');
  const { proofKeyFile, baseUrl } = readConfig(io.environment);
  const vkey = await withInterruptibleDatabase(io, async ({ db, now }) => {
    await requireNamedTenant(db, tenant);
    if (proofKeyFile === undefined) {
      const known = await readLog(db, tenant);
      if (known !== undefined) return known.vkey;
      throw new OperatorError('no history is sealed: set ANNALS_PROOF_KEY_FILE (annals proof key FILE makes a key)');
    }
    const signer = openSigner(proofKeyFile, hostOfLogs(baseUrl, await readInstallationId(db)));
    try {
      return (await openLog(db, tenant, { signer, now, sealing: false })).vkey;
    } finally {
      signer.newest.close();
    }
  });
  io.answer(vkey);
  return 0;
}

async function printLogs(args: string[], io: CommandIo): Promise<number> {
  parseCommand('proof logs', { args, options: {} });
  await withInterruptibleDatabase(io, async ({ db }) => {
    for (const tenant of await tenantsWith(db, tenantsWithLog)) {
      const log = await readLog(db, tenant);
      if (log !== undefined) io.answer(`log ${log.vkey}`);
    }
  });
  return 0;
}
