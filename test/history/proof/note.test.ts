import { expect, test } from 'vitest';
import {
  cosign,
  cosignedAt,
  openCheckpoint,
  parseCheckpoint,
  signCheckpoint,
} from '../../../src/proof/log/checkpoint.ts';
import { formatInclusionProof, hashLeaf, parseInclusionProof } from '../../../src/proof/log/merkle.ts';
import {
  formatVerifierKey,
  isSignedBy,
  parseNote,
  parseVerifierKey,
  signatureTypes,
} from '../../../src/proof/log/note.ts';
import { signerOf } from './signers.ts';

const log = signerOf('example.com/log');
const root = hashLeaf('one');
const signed = signCheckpoint({ origin: log.name, size: 1, root }, log);

// The example on the page of signed-note, https://c2sp.org/signed-note
const exampleKey = 'example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k';
const example = `This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
`;

function noteOf(text: string) {
  const note = parseNote(text);
  if (note === undefined) throw new Error('this is no note');
  return note;
}

test('the example of the signed-note page is verified, and not with one character changed', () => {
  const verifier = parseVerifierKey(exampleKey);
  expect(formatVerifierKey(verifier)).toBe(exampleKey);
  expect(isSignedBy(noteOf(example), verifier)).toBe(true);
  expect(isSignedBy(noteOf(example.replace('example', 'exemple')), verifier)).toBe('wrong');
  expect(isSignedBy(noteOf(example), log)).toBe(false);
});

test.each([
  ['', 'a verifier key has the form name+id+key'],
  ['example.com/foo+530d903a', 'a verifier key has the form name+id+key'],
  [exampleKey.replace('530d903a', '530d903b'), 'the id of the verifier key is not that of its name and key'],
  [
    exampleKey.replace('example.com/foo', 'example.com/fo'),
    'the id of the verifier key is not that of its name and key',
  ],
  [exampleKey.replace('AekyeRrm', 'AukyeRrm'), 'the verifier key is not one of Ed25519'],
  [exampleKey.slice(0, -4), 'the verifier key is not one of Ed25519'],
  [`two words${exampleKey.slice(15)}`, 'a verifier key has the form name+id+key'],
])('no verifier key: %s', (text, reason) => {
  expect(() => parseVerifierKey(text)).toThrow(reason);
});

test.each([
  ['without a blank line', 'text\n— a b\n'],
  ['without its last newline', example.slice(0, -1)],
  ['with a tab', example.replace('This is', 'This\tis')],
  ['with another dash', example.replace('—', '-')],
  ['with base64 that another text has too', example.replace('IneyaQM=', 'IneyaQN=')],
  ['with a line behind the signatures', `${example}\nmore\n`],
  ['without a signature', 'text\n\n'],
  ['with 101 signatures', `text\n\n${example.split('\n\n')[1]?.repeat(101)}`],
])('a note is refused %s', (_what, text) => {
  expect(parseNote(text)).toBeUndefined();
});

test('a note with 100 signatures is read', () => {
  expect(noteOf(`text\n\n${example.split('\n\n')[1]?.repeat(100)}`).signatures).toHaveLength(100);
});

test('a checkpoint is read as signed, and refused if another key signed it', () => {
  expect(openCheckpoint(signed, log)).toMatchObject({ origin: log.name, size: 1, root });
  expect(openCheckpoint(signed.replace('\n1\n', '\n2\n'), log)).toBe('has a signature that is not for this text');
  expect(openCheckpoint(signed, { ...signerOf(log.name), id: log.id })).toBe(
    'has a signature that is not for this text',
  );
  expect(openCheckpoint(signed, signerOf(log.name))).toBe('is not signed by this key');
  expect(openCheckpoint(signed, signerOf('example.com/other'))).toBe(
    'is of the log example.com/log, and the key is of example.com/other',
  );
  expect(openCheckpoint('', log)).toBe('is no signed checkpoint');
});

test.each([
  ['a leading zero', '\n1\n', '\n01\n'],
  ['a negative size', '\n1\n', '\n-1\n'],
  ['no size', '\n1\n', '\n\n'],
  ['a size that no number holds', '\n1\n', '\n9007199254740993\n'],
  ['a root of 31 bytes', root.toString('base64'), Buffer.alloc(31).toString('base64')],
  ['leaves in an empty tree', '\n1\n', '\n0\n'],
])('no checkpoint has %s', (_what, from, to) => {
  expect(parseCheckpoint(signed)).toBeDefined();
  expect(parseCheckpoint(signed.replace(from, to))).toBeUndefined();
});

test('a cosignature has its time, and is valid for one text, time and witness', () => {
  const witness = signerOf('example.com/witness', signatureTypes.cosignature);
  const { text } = noteOf(signed);
  const both = noteOf(signed + cosign(text, witness, 1_700_000_000));
  expect(cosignedAt(both, witness)).toBe(1_700_000_000);
  expect(isSignedBy(both, log)).toBe(true);
  expect(cosignedAt(noteOf(signed), witness)).toBeUndefined();
  expect(cosignedAt(both, signerOf('example.com/witness', signatureTypes.cosignature))).toBeUndefined();
  expect(cosignedAt({ ...both, text: both.text.replace('\n1\n', '\n2\n') }, witness)).toBe('wrong');
  const [first, second] = both.signatures;
  const later = Buffer.from(second?.bytes ?? '');
  later.writeBigUInt64BE(1_700_000_001n);
  const moved = {
    ...both,
    signatures: [first, second && { ...second, bytes: later }].filter((one) => one !== undefined),
  };
  expect(cosignedAt(moved, witness)).toBe('wrong');
  expect(() => cosignedAt(both, log)).toThrow('is no key of a witness');
});

test('a proof in a file is read as written, with and without extra data', () => {
  for (const extra of [undefined, Buffer.from('{}')]) {
    const proof = { extra, index: 7, hashes: [root, hashLeaf('two')], checkpoint: signed };
    expect(parseInclusionProof(formatInclusionProof(proof))).toEqual(proof);
  }
  const file = formatInclusionProof({ extra: undefined, index: 0, hashes: [], checkpoint: signed });
  expect(file.startsWith('c2sp.org/tlog-proof@v1\nindex 0\n\nexample.com/log\n1\n')).toBe(true);
  expect(parseInclusionProof(file.replace('@v1', '@v2'))).toBeUndefined();
  expect(parseInclusionProof(file.replace('index 0', 'index 00'))).toBeUndefined();
  expect(parseInclusionProof(file.replace('index 0', 'index 0\nAAAA'))).toBeUndefined();
  expect(parseInclusionProof(file.replace('index 0', `extra ?\nindex 0`))).toBeUndefined();
  expect(parseInclusionProof('')).toBeUndefined();
});
