import { readFile } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { codeOf, OperatorError } from '../../core/errors.ts';
import { BundleFault } from '../../proof/bundle/lines.ts';
import { firstBytes, readBundle } from '../../proof/bundle/read-bundle.ts';
import { parseVerifierKey } from '../../proof/log/note.ts';
import { parsePolicy } from '../../proof/log/policy.ts';
import { lineOf, printable, type Verdict } from '../../proof/verify/verdicts.ts';
import { findingOfPolicy, type Trusted, type Verification, verifyBundle } from '../../proof/verify/verify-bundle.ts';
import { certificateStart, openCertificate, verifyProof } from '../../proof/verify/verify-proof.ts';
import { parseCommand } from '../arguments.ts';
import { type Command, type CommandIo, UsageError } from '../command.ts';
import { written } from '../output.ts';

const proofStart = 'c2sp.org/tlog-proof@';
/** Printed verdicts; --ndjson prints all. */
const maxLines = 100;

export const command: Command = {
  help: `Usage: annals verify FILE --key VKEY [--key VKEY ...] [--checkpoint OLD] [--policy FILE]
                     [--accept RECEIPT,RECEIPT...] [--ndjson]

Verifies a bundle of "annals proof bundle", the proof of one entry, or the certificate of an
erasure, without a database or network. Also available as a single file, annals-verify.js,
for Node 20.19 or newer.

  --key VKEY         the verifier key of the log ("annals proof vkey"); if the key was
                     changed, pass the old and the new one
  --checkpoint OLD   a checkpoint that you kept: the history up to it must be the same
  --policy FILE      witnesses that must have signed (C2SP tlog-policy)
  --accept RECEIPTS  receipts that you know of and accept: erasure@4021
  --ndjson           print the verdict on each range of positions as NDJSON

It prints the verdicts by position:

  verified   the entry is as it was sealed
  redacted   fields were erased, and a receipt says so
  erased     the entry is gone, and the receipt of an erasure says so
  expired    the entry is gone, and a receipt of retention says so
  MISSING    the entry is gone without a receipt
  CHANGED    the entry is not as it was sealed
  LOST       the old checkpoint signs the entry, and a restore lost it

The exit code is 0 only if nothing is wrong and every receipt is accepted; that of the first
sealing needs no acceptance. docs/proof.md says what this proves, and what it does not.

Example:
  annals verify acme.bundle --key "$(cat acme.vkey)" --checkpoint acme-2026-01.checkpoint`,

  async run(args, io) {
    const { values, positionals } = parseCommand('verify', {
      args,
      options: {
        key: { type: 'string', multiple: true },
        checkpoint: { type: 'string' },
        policy: { type: 'string' },
        accept: { type: 'string', multiple: true },
        ndjson: { type: 'boolean' },
      },
      allowPositionals: true,
    });
    const [file, ...more] = positionals;
    const keys = values.key ?? [];
    if (file === undefined || more.length > 0 || keys.length === 0) throw new UsageError('verify needs FILE and --key');
    for (const key of keys) fromAuditor('--key:', () => parseVerifierKey(key));
    const trusted: Trusted = {
      keys,
      oldCheckpoint: values.checkpoint === undefined ? undefined : await readText(values.checkpoint),
      policy: values.policy === undefined ? undefined : await readText(values.policy),
      accept: new Set((values.accept ?? []).flatMap((names) => names.split(',')).map((name) => name.trim())),
    };
    if (trusted.policy !== undefined) fromAuditor('--policy:', () => parsePolicy(trusted.policy ?? ''));
    try {
      const start = (await firstBytes(file, proofStart.length)).toString();
      if (start === proofStart) return printProof(await readText(file), trusted, io);
      if (start.startsWith(certificateStart)) return printCertificate(await readText(file), trusted, io);
      return await printBundle(file, trusted, values.ndjson === true, io);
    } catch (error) {
      if (error instanceof BundleFault) throw new OperatorError(`${file} ${error.message}`, { cause: error });
      if (error instanceof RangeError) throw new OperatorError(error.message, { cause: error });
      throw readFault(file, error);
    }
  },
};

async function printBundle(file: string, trusted: Trusted, isNdjson: boolean, io: CommandIo): Promise<number> {
  let lines = 0;
  const tell = (verdict: Verdict): void => {
    if (isNdjson) io.answer(JSON.stringify(verdict));
    else if (!['verified', 'receipt', 'not shown'].includes(verdict.verdict)) {
      lines += 1;
      if (lines <= maxLines) io.answer(lineOf(verdict));
    }
  };
  const result = await verifyBundle(() => withReader(readBundle(file), io.stdout), trusted, tell);
  if (isNdjson) {
    const receipts = result.receipts.map(({ receipt, isAccepted }) => ({ name: receipt.name, accepted: isAccepted }));
    io.answer(
      JSON.stringify({
        right: result.isRight,
        counts: Object.fromEntries(result.counts),
        findings: result.findings,
        receipts,
      }),
    );
  } else {
    if (lines > maxLines) io.answer(`... and ${lines - maxLines} more ranges: --ndjson prints all`);
    printSummary(result, io);
  }
  return result.isRight ? 0 : 1;
}

/** Applies the back-pressure of the output to the input. */
async function* withReader<Item>(items: AsyncIterable<Item>, output: Writable): AsyncGenerator<Item> {
  for await (const item of items) {
    if (output.writableNeedDrain) await written(output, '');
    yield item;
  }
}

function printSummary({ isRight, findings, counts, receipts }: Verification, io: CommandIo): void {
  const list = [...counts].map(([word, count]) => `${count} ${word}`).join(', ');
  io.answer(`Positions: ${list || 'none'}.`);
  for (const { text, isWrong } of findings) io.answer(printable(isWrong ? `WRONG: ${text}` : text));
  for (const { receipt, isAccepted } of receipts) {
    const about = receipt.ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
    io.answer(`Receipt ${receipt.name}, about ${about} positions: ${isAccepted ? 'accepted' : 'not accepted'}`);
  }
  const unknown = receipts.filter(({ isAccepted }) => !isAccepted).map(({ receipt }) => receipt.name);
  if (unknown.length > 0) {
    io.answer(
      `Ask the operator about the receipts that you do not know. To accept them: --accept ${unknown.join(',')}`,
    );
  }
  const isPart = counts.has('not shown');
  io.answer(isRight ? `Nothing is wrong${isPart ? ' with what is shown' : ''}.` : 'This history is not verified.');
}

function printProof(text: string, { keys, policy, oldCheckpoint }: Trusted, io: CommandIo): number {
  if (oldCheckpoint !== undefined) {
    throw new OperatorError('the proof of one entry has a checkpoint of its own; --checkpoint is for bundles');
  }
  const result = verifyProof(text, keys);
  if (typeof result === 'string') {
    io.answer(printable(`CHANGED: the proof ${result}.`));
    return 1;
  }
  const { position, origin, size, hidden, checkpoint } = result;
  io.answer(`Position ${position} is verified: the checkpoint of ${origin} signs the positions up to ${size}.`);
  if (hidden.length > 0) io.answer(printable(`Not shown: ${hidden.join(', ')}.`));
  if (policy === undefined) return 0;
  const { text: witnesses, isWrong } = findingOfPolicy(checkpoint, parsePolicy(policy));
  io.answer(isWrong ? `WRONG: ${witnesses}` : witnesses);
  return isWrong ? 1 : 0;
}

function printCertificate(text: string, { keys, policy, oldCheckpoint, accept }: Trusted, io: CommandIo): number {
  if (oldCheckpoint !== undefined || policy !== undefined || accept.size > 0) {
    throw new OperatorError('a certificate is verified with --key alone');
  }
  const certificate = openCertificate(text, keys);
  if (typeof certificate === 'string') {
    io.answer(`WRONG: the certificate ${certificate}.`);
    return 1;
  }
  for (const line of certificate.json.trimEnd().split('\n')) io.answer(printable(line));
  io.answer('The key signed this certificate.');
  return 0;
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw readFault(path, error);
  }
}

function readFault(path: string, error: unknown): unknown {
  const code = codeOf(error) ?? '';
  return ['ENOENT', 'EACCES', 'EISDIR', 'EPERM'].includes(code)
    ? new OperatorError(`cannot read ${path} (${code})`, { cause: error })
    : error;
}

function fromAuditor(what: string, parse: () => unknown): void {
  try {
    parse();
  } catch (error) {
    if (error instanceof RangeError) throw new OperatorError(`${what} ${error.message}`, { cause: error });
    throw error;
  }
}
