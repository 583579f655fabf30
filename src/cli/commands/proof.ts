import { type FileHandle, open, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { readInstallationId } from '../../access/oauth/service.ts';
import { readConfig } from '../../core/config/config.ts';
import { hasCode, OperatorError } from '../../core/errors.ts';
import { findMisfiled } from '../../history/upkeep/misfiled.ts';
import type { Database } from '../../postgres/database.ts';
import { tenantsWith } from '../../postgres/tenants/tenants-with.ts';
import type { BundleLine } from '../../proof/bundle/lines.ts';
import { formatLine } from '../../proof/bundle/write-bundle.ts';
import { readLog, tenantsWithLog } from '../../proof/log/log-store.ts';
import { openLog } from '../../proof/log/sign-log.ts';
import { hostOfLogs, makeProofKey, openSigner } from '../../proof/log/signer.ts';
import { checkHistory } from '../../proof/verify/check-history.ts';
import { storeCheck } from '../../proof/verify/check-store.ts';
import { isWrong, lineOf } from '../../proof/verify/verdicts.ts';
import { onlyOperand, parseCommand, runAction } from '../arguments.ts';
import { type Command, type CommandIo, Stopped, UsageError } from '../command.ts';
import { written } from '../output.ts';
import { requireNamedTenant } from '../require-tenant.ts';
import { withContext as inContext } from '../with-context.ts';
import { withInterruptibleDatabase } from '../with-database.ts';

export const command: Command = {
  help: `Usage: annals proof key FILE
       annals proof vkey --tenant T
       annals proof logs
       annals proof bundle --tenant T [--from POSITION] [--to POSITION] [--q Q] [--context] FILE
       annals proof check [--tenant T]

key creates the key that signs histories, in a new file that only its owner can read. Keep it
out of the database and its backups. Set ANNALS_PROOF_KEY_FILE to the file and start the
service: from then on it seals the history of every tenant. The service keeps FILE.logs beside
it, the newest checkpoint of each log; keep the two together, on one machine.

vkey prints the verifier key of the tenant's log. With it and an old checkpoint, anyone can
find out offline whether a change up to that checkpoint was altered. Hand it out early, over a
channel that you trust. It stays the same until the key or the log changes.

logs prints a line for each signed log, in the format that witnesses read: log and the
verifier key, without the name of the tenant.

bundle writes the history up to the newest checkpoint to a new file, together with its proof,
for "annals verify" and the verifier key. With --q it contains only the changes that match,
from all times, and cannot prove that these are all. Contexts are hidden without --context.
Names ending in .gz are compressed; - is stdout.

check verifies the history in the database, of one tenant or of all that are sealed, and
reports faults. It needs ANNALS_PROOF_KEY_FILE. The exit code is 0 only if all were checked
and none has a fault. The metrics show the result until the next check; run it from cron.

Example:
  annals proof key /etc/annals/proof.key`,

  run: runAction('proof', { key: makeKey, vkey: printVerifierKey, logs: printLogs, bundle: writeBundle, check }),
};

async function makeKey(args: string[], io: CommandIo): Promise<number> {
  const { positionals } = parseCommand('proof key', { args, options: {}, allowPositionals: true });
  const file = onlyOperand(positionals, 'proof key needs one FILE');
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

async function writeBundle(args: string[], io: CommandIo): Promise<number> {
  const { values, positionals } = parseCommand('proof bundle', {
    args,
    options: {
      tenant: { type: 'string' },
      from: { type: 'string' },
      to: { type: 'string' },
      q: { type: 'string' },
      context: { type: 'boolean' },
    },
    allowPositionals: true,
  });
  const { tenant, q, context: withContext = false } = values;
  const file = onlyOperand(positionals, 'proof bundle needs --tenant and one FILE');
  if (tenant === undefined) throw new UsageError('proof bundle needs --tenant and one FILE');
  const range = { from: positionOf('--from', values.from), to: positionOf('--to', values.to), q, withContext };
  return await inContext(io, async ({ db, readBundle }, _config, watch) => {
    await requireNamedTenant(db, tenant);
    const signal = AbortSignal.any([io.stop, watch.signal]);
    const text = textOf(readBundle(tenant, range));
    if (file === '-') {
      for await (const line of text) {
        if (io.stop.aborted) throw new Stopped(io.stop.reason);
        if (watch.reason !== undefined) throw new OperatorError(watch.reason);
        // The end of the process reports a failed write.
        if ((await written(io.stdout, line)) !== undefined) return 1;
      }
    } else {
      await writeNewFile(file, text, signal);
      io.answer(JSON.stringify({ file }));
    }
    return 0;
  });
}

async function* textOf(lines: AsyncIterable<BundleLine>): AsyncGenerator<string> {
  for await (const line of lines) yield formatLine(line);
}

/** Writes a new file, compressed if its name ends in .gz. Removes it if the write fails. */
async function writeNewFile(file: string, text: AsyncIterable<string>, signal: AbortSignal): Promise<void> {
  let opened: FileHandle;
  try {
    opened = await open(file, 'wx');
  } catch (error) {
    const fault = hasCode(error, 'EEXIST') ? `${file} already exists` : `${file} cannot be created`;
    throw new OperatorError(fault, { cause: error });
  }
  try {
    const packed = file.endsWith('.gz') ? [createGzip()] : [];
    await pipeline([Readable.from(text), ...packed, opened.createWriteStream({ flush: true })], { signal });
  } catch (error) {
    await rm(file, { force: true });
    throw error;
  }
}

async function check(args: string[], io: CommandIo): Promise<number> {
  const { values } = parseCommand('proof check', { args, options: { tenant: { type: 'string' } } });
  return await inContext(io, async ({ db, readBundle, sealing }, _config, watch) => {
    if (values.tenant !== undefined) await requireNamedTenant(db, values.tenant);
    if (sealing === undefined) throw new OperatorError('proof check needs ANNALS_PROOF_KEY_FILE');
    const { signer, now } = sealing;
    const tenants = values.tenant === undefined ? await sealedTenants(db) : [values.tenant];
    let isRight = true;
    for (const tenant of tenants) {
      io.stop.throwIfAborted();
      watch.signal.throwIfAborted();
      const { origin, checkpoint } = (await readLog(db, tenant)) ?? {};
      if (origin === undefined && values.tenant !== undefined)
        throw new OperatorError(`the history of ${tenant} is not sealed`);
      if (origin === undefined) {
        io.answer(`${tenant}: the history was sealed, and its log is gone`);
        isRight = false;
        continue;
      }
      const newest = signer.newest.newest(origin)?.note;
      // The log of a tenant without changes: only its verifier key was ever requested.
      if (values.tenant === undefined && checkpoint === null && newest === undefined) continue;
      const result = await checkHistory(
        tenant,
        { db, readBundle, findMisfiled, key: signer.keyOf(origin), newest },
        (verdict) => {
          if (isWrong(verdict)) io.answer(`${tenant}: ${lineOf(verdict)}`);
        },
      ).catch((error: unknown) => {
        if (error instanceof OperatorError) return error;
        throw error;
      });
      // A tenant that cannot be checked does not block the others.
      if (result instanceof OperatorError) {
        io.answer(`${tenant}: not checked: ${result.message}`);
        isRight = false;
        continue;
      }
      for (const { isWrong: wrong, text, isRemark } of result.findings) {
        if (wrong || isRemark === true) io.answer(`${tenant}: ${text}`);
      }
      const isWhole = result.findings.every(({ isRemark }) => isRemark !== true);
      const right = isWhole ? 'nothing is wrong' : 'nothing is wrong with what is left';
      io.answer(`${tenant}: ${result.isRight ? right : 'the history is not what was sealed'}`);
      await storeCheck(db, tenant, { at: now(), isRight: result.isRight });
      isRight = isRight && result.isRight;
    }
    return isRight ? 0 : 1;
  });
}

/** Includes tenants with leaves and no log, whose log was removed. */
async function sealedTenants(db: Database): Promise<string[]> {
  const [logs, leaves] = [tenantsWithLog, { table: 'proof_leaf', condition: 'true' }];
  return [...new Set([...(await tenantsWith(db, logs)), ...(await tenantsWith(db, leaves))])].sort();
}

function positionOf(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError(`${option} must be a position: a whole number from 1`);
  return Number(text);
}
