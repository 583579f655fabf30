import { execFile } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { bundleVerifier } from '../../../build/bundle.ts';
import type { BundleLine } from '../../../src/proof/bundle/lines.ts';
import { formatLine } from '../../../src/proof/bundle/write-bundle.ts';
import { formatInclusionProof, hashOfRange, inclusionRanges, rootOf } from '../../../src/proof/log/merkle.ts';
import { formatVerifierKey, signatureTypes, verifierOf } from '../../../src/proof/log/note.ts';
import { annals } from '../../support/server/command.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  bundleOf,
  checkpointOf,
  entryAt,
  entryOf,
  first,
  goneOf,
  key,
  type Leaf,
  log,
  receiptOf,
  short,
} from './made-bundles.ts';
import { signerOf } from './signers.ts';

const run = promisify(execFile);
const folder = temporaryFolder();
const elsewhere = join(folder, 'annals-verify.mjs');

await bundleVerifier(join(import.meta.dirname, '../../..'), folder);
// Without the package next to it.
copyFileSync(join(folder, 'annals-verify.js'), elsewhere);

/**
 * The command of the package, the same program run in this process: starting one takes longer than the test.
 */
const verify = (...args: string[]) => annals(['verify', ...args]);

/** The single-file program. */
async function verifyElsewhere(...args: string[]) {
  try {
    const { stdout } = await run(process.execPath, [elsewhere, ...args], { cwd: folder });
    return { code: 0, stdout, stderr: '' };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

function file(name: string, content: string | readonly BundleLine[]): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : content.map(formatLine).join(''));
  return path;
}

/** The proof of one entry, as `GET …/log/proof` returns it. */
async function proofOf(leaves: readonly Leaf[], position: number, signer = log): Promise<string> {
  const hashes = leaves.map(({ hash }) => hash);
  const read = async (level: number, index: number) =>
    rootOf(hashes.slice(index * 2 ** level, (index + 1) * 2 ** level));
  const ranges = inclusionRanges(position - 1, leaves.length);
  return formatInclusionProof({
    extra: Buffer.from(formatLine(leaves[position - 1]?.line as BundleLine)),
    index: position - 1,
    hashes: await Promise.all(ranges.map((range) => hashOfRange(range, read))),
    checkpoint: checkpointOf(bundleOf(short.leaves, signer)),
  });
}

test('the single-file program verifies a bundle, and reports its findings as sentences', async () => {
  const bundle = file('sound', short.lines);
  const old = file('old', checkpointOf(bundleOf(short.leaves.slice(0, 9))));
  expect(await verifyElsewhere(bundle, '--key', key, '--checkpoint', old)).toEqual({
    code: 0,
    stderr: '',
    stdout: `Positions: 1 receipt, 19 verified.
The checkpoint of example.com/log/1 signs the positions up to 20.
The positions up to 9 are those that the old checkpoint signs.
Receipt first-sealing@1, about 0 positions: accepted
Nothing is wrong.
`,
  });
});

test('each wrong position has a line, receipts must be accepted by name, and the exit code is 1', async () => {
  const leaves = [first, goneOf(2), goneOf(3), entryOf(4), receiptOf(5, { what: 'retention', positions: [[2, 2]] })];
  const bundle = file('wrong', bundleOf(leaves).lines);
  const result = await verify(bundle, '--key', key);
  expect(result).toMatchObject({ code: 1, stderr: '' });
  expect(result.stdout).toBe(`expired   2: retention@5
MISSING   3: not there any more, and no receipt says why
Positions: 2 receipt, 1 expired, 1 MISSING, 1 verified.
The checkpoint of example.com/log/1 signs the positions up to 5.
Receipt first-sealing@1, about 0 positions: accepted
Receipt retention@5, about 1 positions: not accepted
Ask the operator about the receipts that you do not know. To accept them: --accept retention@5
This history is not verified.
`);
  const lines = (await verify(bundle, '--key', key, '--accept', 'retention@5', '--ndjson')).stdout
    .trimEnd()
    .split('\n');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { from: 1, to: 1, verdict: 'receipt' },
    { from: 2, to: 2, verdict: 'expired', receipt: 'retention@5' },
    { from: 3, to: 3, verdict: 'MISSING' },
    { from: 4, to: 4, verdict: 'verified' },
    { from: 5, to: 5, verdict: 'receipt' },
    { right: false, receipts: [{ accepted: true }, { name: 'retention@5', accepted: true }] },
  ]);
});

test('100 lines of faults are printed, and of 101 one is only counted', async () => {
  const alternating = (count: number) =>
    Array.from({ length: 2 * count }, (_, place) => (place % 2 === 0 ? goneOf(place + 1) : entryOf(place + 1)));
  const hundred = await verify(file('hundred', bundleOf(alternating(100)).lines), '--key', key);
  expect(hundred.stdout.match(/^MISSING/gm)).toHaveLength(100);
  expect(hundred.stdout).not.toContain('more ranges');
  const more = await verify(file('more', bundleOf(alternating(101)).lines), '--key', key);
  expect(more.stdout.match(/^MISSING/gm)).toHaveLength(100);
  expect(more.stdout).toContain('... and 1 more ranges: --ndjson prints all\n');
});

test('the proof of one entry is verified, and refused after any change', async () => {
  const text = await proofOf(short.leaves, 7);
  expect(await verifyElsewhere(file('proof', text), '--key', key)).toEqual({
    code: 0,
    stderr: '',
    stdout: 'Position 7 is verified: the checkpoint of example.com/log/1 signs the positions up to 20.\n',
  });
  const [, extra = ''] = /^extra (.*)$/m.exec(text) ?? [];
  const changed = Buffer.from(Buffer.from(extra, 'base64').toString().replace('jane', 'john')).toString('base64');
  const wrong: [string, string][] = [
    [text.replace(extra, changed), 'shows an entry that is not what was sealed'],
    [text.replace('index 6', 'index 7'), 'is for another position'],
    [text.replace('\n20\n', '\n21\n'), 'has a checkpoint that has a signature that is not for this text'],
    [await proofOf(short.leaves.with(6, entryOf(7)), 7), 'does not lead to the root of its checkpoint'],
  ];
  for (const [broken, reason] of wrong) {
    const result = await verify(file('broken', broken), '--key', key);
    expect(result).toMatchObject({ code: 1, stdout: `CHANGED: the proof ${reason}.\n` });
  }
});

test('a proof from the log of another tenant with the same key is refused', async () => {
  const name = 'example.com/log/2';
  const otherLog = { ...verifierOf(name, signatureTypes.ed25519, log.publicKey), privateKey: log.privateKey };
  const path = file('foreign', await proofOf(short.leaves, 7, otherLog));
  expect(await verify(path, '--key', key)).toMatchObject({
    code: 1,
    stdout: `CHANGED: the proof is of the log ${name}, and the key is of ${log.name}: each log has its own verifier key.\n`,
  });
  expect(await verify(path, '--key', formatVerifierKey(otherLog))).toMatchObject({ code: 0 });
});

test('a proof without the change itself is verified, and says so', async () => {
  const { line } = short.leaves[6] as Leaf;
  if (line.kind !== 'entry') throw new Error('no entry');
  const { position, commitment } = line;
  const leaves = short.leaves.with(6, {
    line: { kind: 'gone', position, commitment },
    hash: short.leaves[6]?.hash as Buffer,
  });
  const { code, stdout } = await verify(file('unshown', await proofOf(leaves, 7)), '--key', key);
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout:
      'Position 7 is verified: the checkpoint of example.com/log/1 signs the positions up to 20.\nNot shown: all of the change.\n',
  });
});

test('the content of a file cannot control the terminal', async () => {
  // Texts written by the database owner: a path with a control character, one side of it hidden.
  const entry = { ...entryAt(2), paths: '{"\u001b[2J\u009b\u202e":{"before":1}}' };
  const { lines } = bundleOf([first, entryOf(2, ['identity', 'context', 'before'], entry)]);
  const { stdout } = await verify(file('steering', lines), '--key', key);
  expect(stdout).toContain('CHANGED   2: fields hidden without a receipt; before "\\u{001b}[2J\\u{009b}\\u{202e}"\n');
});

test.each<[string, () => string[], number, string]>([
  ['no file', () => ['--key', key], 2, 'verify needs FILE and --key'],
  ['no key', () => [file('sound', short.lines)], 2, 'verify needs FILE and --key'],
  ['a file that is not there', () => ['none', '--key', key], 1, 'cannot read none (ENOENT)'],
])('the single-file program exits with a message for %s', async (_what, args, code, message) => {
  const result = await verifyElsewhere(...args());
  expect(result).toMatchObject({ code, stdout: '' });
  expect(result.stderr).toContain(message);
  expect(result.stderr.trimEnd().split('\n')).toHaveLength(1);
});

test.each<[string, () => string[], string]>([
  [
    'a key that is none',
    () => [file('sound', short.lines), '--key', 'x'],
    '--key: a verifier key has the form name+id+key',
  ],
  ['a folder', () => ['.', '--key', key], 'cannot read . (EISDIR)'],
  ['another file', () => [file('other', 'what\n'), '--key', key], 'has a line that is none of a bundle'],
  [
    'an old checkpoint of another key',
    () => [
      file('sound', short.lines),
      '--key',
      formatVerifierKey(signerOf('example.com/log/1')),
      '--checkpoint',
      file('old', checkpointOf(short)),
    ],
    'the old checkpoint is not signed by this key',
  ],
  [
    'a policy that is none',
    () => [file('sound', short.lines), '--key', key, '--policy', file('policy', 'what')],
    '--policy: line 1: a line begins with log, witness, group or quorum',
  ],
])('with %s it exits with a message', async (_what, args, message) => {
  const result = await verify(...args());
  expect(result).toMatchObject({ code: 1, stdout: '' });
  expect(result.stderr).toContain(message);
  expect(result.stderr.trimEnd().split('\n')).toHaveLength(1);
});

test('a bundle that another key signed is wrong as a whole', async () => {
  const otherKey = formatVerifierKey(signerOf('example.com/log/1'));
  const result = await verifyElsewhere(file('sound', short.lines), '--key', otherKey);
  expect(result.code).toBe(1);
  expect(result.stdout).toContain('WRONG: The checkpoint of the file is not signed by this key.');
});
