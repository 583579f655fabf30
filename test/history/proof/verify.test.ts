import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { BundleEntry, BundleLine } from '../../../src/proof/bundle/lines.ts';
import { readBundle } from '../../../src/proof/bundle/read-bundle.ts';
import { formatLine } from '../../../src/proof/bundle/write-bundle.ts';
import { cosign } from '../../../src/proof/log/checkpoint.ts';
import { commitmentOf } from '../../../src/proof/log/commitment.ts';
import { hashLeaf } from '../../../src/proof/log/merkle.ts';
import { formatVerifierKey, parseNote, type Signer, signatureTypes, verifierOf } from '../../../src/proof/log/note.ts';
import { newSeed, saltsOf } from '../../../src/proof/log/salts.ts';
import type { Verdict } from '../../../src/proof/verify/verdicts.ts';
import { type Trusted, verifyBundle } from '../../../src/proof/verify/verify-bundle.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  bundleOf,
  checkpointOf,
  entries,
  entryOf,
  first,
  goneOf,
  key,
  type Leaf,
  log,
  noneOf,
  receiptOf,
  short,
  sound,
} from './made-bundles.ts';
import { signerOf } from './signers.ts';

const folder = temporaryFolder();

async function verify(lines: readonly BundleLine[], trusted: Partial<Trusted> = {}) {
  // Through the text of a file, as an auditor receives it.
  const file = join(folder, 'bundle');
  writeFileSync(file, lines.map(formatLine).join(''));
  const verdicts: Verdict[] = [];
  const options = { keys: [key], accept: new Set<string>(), ...trusted };
  const result = await verifyBundle(
    () => readBundle(file),
    options,
    (verdict) => void verdicts.push(verdict),
  );
  return { ...result, verdicts, wrong: verdicts.filter(({ verdict }) => verdict === verdict.toUpperCase()) };
}

test('a whole history is verified, and the old checkpoint with it', async () => {
  const older = bundleOf(sound.leaves.slice(0, 300));
  const result = await verify(sound.lines, { oldCheckpoint: checkpointOf(older) });
  expect(result.isRight).toBe(true);
  expect(result.findings.map(({ text }) => text)).toEqual([
    'The checkpoint of example.com/log/1 signs the positions up to 600.',
    'The positions up to 300 are those that the old checkpoint signs.',
  ]);
  expect(result.verdicts).toEqual([
    { from: 1, to: 1, verdict: 'receipt' },
    { from: 2, to: 600, verdict: 'verified' },
  ]);
});

test('every field of an entry is proved: a change of any names its position', async () => {
  const entry = short.lines.find((line) => line.kind === 'entry' && line.position === 15);
  if (entry?.kind !== 'entry') throw new Error('no entry');
  for (const [index, field] of entry.fields.entries()) {
    const changed =
      typeof field === 'object' && field !== null ? { hash: hashLeaf('other') } : field === null ? '' : `${field} `;
    const lines = short.lines.map((line) =>
      line === entry ? { ...entry, fields: entry.fields.with(index, changed) } : line,
    );
    const { isRight, wrong } = await verify(lines);
    expect(isRight).toBe(false);
    expect(wrong).toEqual([{ from: 15, to: 15, verdict: 'CHANGED', reason: 'not what was sealed' }]);
  }
});

test.each<[string, Partial<BundleEntry>]>([
  ['a path more', { paths: 3 }],
  ['a related item less', { related: 0 }],
  ['another salt', { cover: [newSeed()] }],
  ['no salts', { cover: [] }],
])('an entry with %s is named', async (_what, change) => {
  const lines = short.lines.map((line) =>
    line.kind === 'entry' && line.position === 15 ? { ...line, ...change } : line,
  );
  const { wrong } = await verify(lines);
  expect(wrong).toEqual([{ from: 15, to: 15, verdict: 'CHANGED', reason: 'not what was sealed' }]);
});

test('an entry resealed without the key is named with its block', async () => {
  const forged = entryOf(300).line;
  const lines = sound.lines.map((line) => ('position' in line && line.position === 300 ? forged : line));
  const { isRight, wrong, findings } = await verify(lines);
  expect(isRight).toBe(false);
  expect(wrong).toEqual([
    { from: 257, to: 512, verdict: 'CHANGED', reason: 'in a block that is not the one which was sealed' },
  ]);
  expect(findings[0]).toMatchObject({ isWrong: true });
  // Even with the block hashes rebuilt, the old checkpoint shows up to where the history is unchanged.
  const leaves = sound.leaves.with(299, entryOf(300));
  const remade = bundleOf(leaves).lines.with(0, sound.lines[0] as BundleLine);
  expect((await verify(remade)).wrong).toMatchObject([{ from: 1, to: 600 }]);
  const oldCheckpoint = checkpointOf(bundleOf(sound.leaves.slice(0, 256)));
  expect((await verify(remade, { oldCheckpoint })).wrong).toMatchObject([{ from: 257, to: 600 }]);
});

test.each<[string, (leaves: Leaf[]) => Leaf[]]>([
  ['two entries swapped', (leaves) => leaves.with(9, leaves[10] as Leaf).with(10, leaves[9] as Leaf)],
  ['an entry that is there twice', (leaves) => leaves.toSpliced(10, 0, leaves[9] as Leaf)],
  ['an entry left out', (leaves) => leaves.toSpliced(10, 1)],
])('a bundle with %s is refused', async (_what, change) => {
  const { lines } = bundleOf(change(sound.leaves));
  await expect(verify(lines.with(0, sound.lines[0] as BundleLine))).rejects.toThrow(/^lacks position/);
});

test('a rewritten history signed by the same key does not match the old checkpoint', async () => {
  const resigned = bundleOf([first, ...entries(2, 600)]);
  const { isRight, findings } = await verify(resigned.lines, { oldCheckpoint: checkpointOf(sound) });
  expect(isRight).toBe(false);
  expect(findings.at(-1)).toEqual({
    isWrong: true,
    text: 'The positions up to 600 are not those that the old checkpoint signs.',
  });
});

test('a gone, expired, erased or redacted entry needs a receipt, and each receipt must be accepted', async () => {
  const made = bundleOf([
    noneOf(1),
    receiptOf(2, { what: 'first sealing', positions: [[1, 1]] }),
    entryOf(3, ['identity', 'context', 'actor', 'before']),
    goneOf(4),
    goneOf(5),
    goneOf(6),
    noneOf(7),
    receiptOf(8, {
      what: 'erasure',
      reason: 'request',
      positions: [
        [3, 3],
        [5, 5],
      ],
    }),
    receiptOf(9, { what: 'retention', positions: [[4, 4]] }),
    entryOf(10, ['identity', 'name']),
  ]);
  const expected = [
    { from: 1, to: 1, verdict: 'expired', receipt: 'first-sealing@2' },
    { from: 2, to: 2, verdict: 'receipt' },
    { from: 3, to: 3, verdict: 'redacted', receipt: 'erasure@8', fields: ['actor', 'before "price"', 'before "a.b"'] },
    { from: 4, to: 4, verdict: 'expired', receipt: 'retention@9' },
    { from: 5, to: 5, verdict: 'erased', receipt: 'erasure@8' },
    { from: 6, to: 7, verdict: 'MISSING', reason: 'not there any more, and no receipt says why' },
    { from: 8, to: 9, verdict: 'receipt' },
    { from: 10, to: 10, verdict: 'CHANGED', reason: 'fields hidden without a receipt', fields: ['name'] },
  ];
  expect((await verify(made.lines)).verdicts).toEqual(expected);
  const right = bundleOf(
    made.leaves.slice(0, 5).concat(
      made.leaves.slice(7, 9).map(({ line }, place) => {
        const old = made.lines.find((one) => one.kind === 'receipt text' && one.position === line.position);
        return receiptOf(6 + place, JSON.parse(old?.kind === 'receipt text' ? old.text : '{}'));
      }),
    ),
  );
  const accept = new Set(['erasure@6', 'retention@7']);
  expect(await verify(right.lines, { accept })).toMatchObject({ isRight: true, wrong: [] });
  accept.delete('retention@7');
  const result = await verify(right.lines, { accept });
  expect(result).toMatchObject({ isRight: false, wrong: [] });
  expect(result.receipts.filter(({ isAccepted }) => !isAccepted).map(({ receipt }) => receipt.name)).toEqual([
    'retention@7',
  ]);
});

test('a receipt that was not sealed excuses nothing', async () => {
  const made = bundleOf([first, goneOf(2), receiptOf(3, { what: 'hold', positions: [] })]);
  const text = JSON.stringify({ what: 'erasure', positions: [[2, 2]] });
  const forged = made.lines.map((line) =>
    line.kind === 'receipt text' && line.position === 3 ? { ...line, text } : line,
  );
  expect((await verify(forged, { accept: new Set(['erasure@3']) })).wrong).toEqual([
    { from: 2, to: 2, verdict: 'MISSING', reason: 'not there any more, and no receipt says why' },
    { from: 3, to: 3, verdict: 'CHANGED', reason: 'a receipt, and not the one that was sealed' },
  ]);
  for (const position of [2, 4]) {
    const more = made.lines.toSpliced(1, 0, { kind: 'receipt text', position, text });
    const result = await verify(more, { accept: new Set(['hold@3', `erasure@${position}`]) });
    expect(result.isRight).toBe(false);
    expect(result.wrong).toMatchObject([{ from: 2, to: 2, verdict: 'MISSING' }]);
    expect(result.findings.at(-1)?.text).toBe(
      `A receipt says that it is at position ${position}, and the log has none there.`,
    );
  }
});

test('a receipt excuses nothing after it, and only the initial first-sealing receipt needs no acceptance', async () => {
  const early = bundleOf([
    first,
    receiptOf(2, { what: 'retention', positions: [[1, 900]] }),
    goneOf(3),
    receiptOf(4, { what: 'erasure', positions: [[3, 5]] }),
    entryOf(5, ['identity', 'context', 'actor']),
  ]);
  const result = await verify(early.lines, { accept: new Set(['retention@2', 'erasure@4']) });
  expect(result.wrong).toMatchObject([{ from: 5, to: 5, verdict: 'CHANGED' }]);
  expect(result.verdicts).toContainEqual({ from: 3, to: 3, verdict: 'erased', receipt: 'erasure@4' });
  const again = bundleOf([first, noneOf(2), receiptOf(3, { what: 'first sealing', positions: [[2, 2]] })]);
  expect((await verify(again.lines)).isRight).toBe(false);
  expect((await verify(again.lines, { accept: new Set(['first-sealing@3']) })).isRight).toBe(true);
});

test('only a receipt of a restore or a new key links a log to its predecessor', async () => {
  const before = { before: { origin: log.name, checkpoint: null }, kept: 0 };
  const otherLog = signerOf('example.com/log/2');
  const sameKey = { ...verifierOf(otherLog.name, signatureTypes.ed25519, log.publicKey), privateKey: log.privateKey };
  for (const [what, isRight] of [
    ['first sealing', false],
    ['hold', false],
    ['new key', true],
  ] as const) {
    const made = bundleOf([receiptOf(1, { what, positions: [], ...before }), entryOf(2)], sameKey);
    expect((await verify(made.lines, { accept: new Set(['hold@1', 'new-key@1']) })).isRight).toBe(isRight);
  }
});

test('a sealed but unreadable receipt is reported', async () => {
  const made = bundleOf([first, receiptOf(2, { what: 'Erasure', positions: [] })]);
  const { isRight, findings } = await verify(made.lines);
  expect(isRight).toBe(false);
  expect(findings.at(-1)?.text).toMatch(/^The receipt at position 2 says nothing/);
});

test('in a bundle of a part the rest is not shown, and an omitted part is missing', async () => {
  const run = (from: number, to: number): BundleLine => ({
    kind: 'hashes',
    from,
    hashes: sound.leaves.slice(from - 1, to).map(({ hash }) => hash),
  });
  const part = (q: string | null): BundleLine[] => [
    { ...(sound.lines[0] as Extract<BundleLine, { kind: 'header' }>), from: 10, to: 20, q },
    ...sound.lines.filter((line) => line.kind === 'receipt text'),
    run(1, 14),
    sound.leaves[14]?.line as BundleLine,
    run(16, 256),
    sound.lines.find((line) => line.kind === 'tile') as BundleLine,
    run(257, 512),
    sound.lines.findLast((line) => line.kind === 'tile') as BundleLine,
    run(513, 600),
    { kind: 'end', size: 600 },
  ];
  expect((await verify(part('actor:jane'))).findings.at(-1)).toEqual({
    isWrong: false,
    text: 'The file shows the positions from 10 to 20, and of these changes that match "actor:jane" alone. It does not prove that what it leaves out is there.',
  });
  expect((await verify(part('actor:jane'))).verdicts).toEqual([
    { from: 1, to: 14, verdict: 'not shown' },
    { from: 15, to: 15, verdict: 'verified' },
    { from: 16, to: 600, verdict: 'not shown' },
  ]);
  const whole = await verify(part(null));
  expect(whole.wrong).toEqual([
    { from: 10, to: 14, verdict: 'MISSING', reason: 'left out of the file' },
    { from: 16, to: 20, verdict: 'MISSING', reason: 'left out of the file' },
  ]);
});

test('a log continued after a restore states what was lost', async () => {
  const before = sound.leaves.slice(0, 400);
  const next = signerOf('example.com/log/2');
  const onward = (signer: Signer) =>
    bundleOf(
      [
        first,
        ...before.slice(1),
        receiptOf(401, {
          what: 'restore',
          positions: [],
          before: { origin: log.name, checkpoint: checkpointOf(sound) },
          kept: 400,
        }),
        entryOf(402),
      ],
      signer,
    );
  const sameKey = { ...verifierOf(next.name, signatureTypes.ed25519, log.publicKey), privateKey: log.privateKey };
  const made = onward(sameKey);
  const accept = new Set(['restore@401']);
  const lost = await verify(made.lines, { oldCheckpoint: checkpointOf(sound), accept });
  expect(lost.isRight).toBe(false);
  expect(lost.wrong).toEqual([
    { from: 401, to: 600, verdict: 'LOST', reason: 'signed by the old checkpoint, and not here' },
  ]);
  const older = checkpointOf(bundleOf(sound.leaves.slice(0, 300)));
  expect(await verify(made.lines, { oldCheckpoint: older, accept })).toMatchObject({ isRight: true, wrong: [] });
  expect((await verify(made.lines, { oldCheckpoint: older })).isRight).toBe(false);
  // Another key proves nothing about this log unless the auditor accepts it as one of its keys.
  const byOther = onward(next);
  expect((await verify(byOther.lines, { accept })).findings[0]).toMatchObject({ isWrong: true });
  const keys = [key, formatVerifierKey(next)];
  expect(await verify(byOther.lines, { oldCheckpoint: older, accept, keys })).toMatchObject({ isRight: true });
});

test('the old checkpoint reveals a log set back without a receipt', async () => {
  const back = bundleOf(sound.leaves.slice(0, 400));
  const result = await verify(back.lines, { oldCheckpoint: checkpointOf(sound) });
  expect(result.isRight).toBe(false);
  expect(result.wrong).toMatchObject([{ from: 401, to: 600, verdict: 'LOST' }]);
  const stranger = signerOf('example.com/stranger');
  const foreign = bundleOf(sound.leaves.slice(0, 400), stranger);
  const keys = [key, formatVerifierKey(stranger)];
  const foreignResult = await verify(foreign.lines, { oldCheckpoint: checkpointOf(sound), keys });
  expect(foreignResult.findings.at(-1)?.text).toContain('no receipt says that example.com/stranger continues it');
  expect(foreignResult.isRight).toBe(false);
});

test('a policy decides whether enough witnesses saw the checkpoint', async () => {
  const witness = signerOf('witness.example/w1', signatureTypes.cosignature);
  const policy = `witness w1 ${formatVerifierKey(witness)}\nquorum w1\n`;
  expect((await verify(sound.lines, { policy })).findings.at(-1)).toEqual({
    isWrong: true,
    text: 'Witnesses: none, which is less than the policy asks for.',
  });
  const [header, ...rest] = sound.lines as [Extract<BundleLine, { kind: 'header' }>, ...BundleLine[]];
  const line = cosign(parseNote(header.checkpoint)?.text ?? '', witness, 1_700_000_000);
  const cosigned = [{ ...header, checkpoint: header.checkpoint + line }, ...rest];
  expect(await verify(cosigned, { policy })).toMatchObject({ isRight: true });
  expect((await verify(cosigned, { policy })).findings.at(-1)?.text).toBe('Witnesses: w1 at 2023-11-14T22:13:20.000Z.');
  const late = cosign(parseNote(header.checkpoint)?.text ?? '', witness, Number.MAX_SAFE_INTEGER);
  const beyond = await verify([{ ...header, checkpoint: header.checkpoint + late }, ...rest], { policy });
  expect(beyond.findings.at(-1)?.text).toBe('Witnesses: w1 at 9007199254740991 s.');
});

test.each<[string, (text: string) => string | Buffer, RegExp]>([
  ['cut', (text) => text.slice(0, -20), /^has no end/],
  ['without its last line', (text) => text.slice(0, text.lastIndexOf('{')), /^has no end/],
  ['that continues', (text) => `${text}{"end":600}\n`, /^continues behind its end/],
  ['with two headers', (text) => text.slice(0, text.indexOf('\n') + 1) + text, /^does not begin with one header/],
  ['without a header', (text) => text.slice(text.indexOf('\n') + 1), /^does not begin with one header/],
  ['of another version', (text) => text.replace('bundle-v1', 'bundle-v2'), /^is not of the format/],
  ['with a member that no line has', (text) => text.replace('"end"', '"more":1,"end"'), /^has a line that is none/],
  [
    'with a member twice',
    (text) => text.replace('"position":2,', '"position":3,"position":2,'),
    /^has a line that is none/,
  ],
  ['with a space', (text) => text.replace('"end":', '"end": '), /^has a line that is none/],
  ['with half a character', (text) => text.replace('"jane"', '"\\ud83d"'), /^has a line that is none/],
  [
    'with three ends of a range',
    (text) => text.replace('{"end"', '{"positions":[601,600,1],"hashes":""}\n{"end"'),
    /^has a line that is none/,
  ],
  [
    'that is not UTF-8',
    (text) => Buffer.concat([Buffer.from(text), Buffer.from([0xff, 10])]),
    /^has a line that is not UTF-8/,
  ],
  ['with a receipt twice', (text) => text.replace(/\{"receiptAt".*\n/, '$&$&'), /^has the receipt at position 1 twice/],
  [
    'with a receipt behind its position',
    (text) => text.replace('{"end"', `${/\{"receiptAt".*\n/.exec(text)?.[0]}{"end"`),
    /^has the receipt at position 1 twice, or behind/,
  ],
  ['packed and cut', (text) => gzipSync(text).subarray(0, 2000), /^is packed, and cut or changed/],
  ['that is empty', () => '', /^has no end/],
  ['of anything else', () => Buffer.from([1, 2, 10]), /^has a line that is none/],
])('a file %s is refused', async (_what, change, reason) => {
  const file = join(folder, 'broken');
  writeFileSync(file, change(sound.lines.map(formatLine).join('')));
  const options = { keys: [key], accept: new Set<string>() };
  await expect(
    verifyBundle(
      () => readBundle(file),
      options,
      () => {},
    ),
  ).rejects.toThrow(reason);
});

test('a packed bundle is read', async () => {
  const file = join(folder, 'bundle.gz');
  writeFileSync(file, gzipSync(sound.lines.map(formatLine).join('')));
  const options = { keys: [key], accept: new Set<string>() };
  expect(
    await verifyBundle(
      () => readBundle(file),
      options,
      () => {},
    ),
  ).toMatchObject({ isRight: true });
});

test('salts of hidden fields cannot be derived from a bundle', () => {
  const { line } = entryOf(4, ['identity', 'context', 'actor']);
  const entry = line as BundleEntry;
  const shown = entry.fields.map((field) => !(typeof field === 'object' && field !== null));
  const salts = saltsOf({ cover: entry.cover, shown }, shown.length);
  expect(salts.flatMap((salt, index) => (salt === null ? [index] : []))).toEqual([0, 1, 8]);
  expect(
    commitmentOf(
      entry,
      entry.fields.map(() => Buffer.alloc(32)),
    ),
  ).toHaveLength(32);
});
