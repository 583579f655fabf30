import { randomUUID } from 'node:crypto';
import { statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { cosign, cosignedAt, formatCheckpoint, signCheckpoint } from '../../../src/proof/log/checkpoint.ts';
import { CheckpointFile } from '../../../src/proof/log/checkpoint-file.ts';
import { consistencyRanges, hashLeaf, hashOfRange, rootOf } from '../../../src/proof/log/merkle.ts';
import { formatVerifierKey, parseNote, type Signer, signatureTypes } from '../../../src/proof/log/note.ts';
import { parsePolicy, witnessesOf } from '../../../src/proof/log/policy.ts';
import { buildWitness, maxWitnessBody } from '../../../src/proof/witness/add-checkpoint.ts';
import { askWitness } from '../../../src/proof/witness/ask-witness.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startPlainWitness } from './plain-witness.ts';
import { signerOf } from './signers.ts';

const folder = temporaryFolder();

const log = signerOf('example.com/log/1');
const witness = signerOf('witness.example/w1', signatureTypes.cosignature);
const now = 1_700_000_000_000;

/** A log of `size` leaves, each with the text `leaf` and its index. */
function logOf(size: number, signer: Signer = log, leaf = 'leaf') {
  const hashes = Array.from({ length: size }, (_, place) => hashLeaf(`${leaf} ${place}`));
  const root = rootOf(hashes);
  const read = async (level: number, index: number) =>
    rootOf(hashes.slice(index * 2 ** level, (index + 1) * 2 ** level));
  return {
    size,
    note: signCheckpoint({ origin: signer.name, size, root }, signer),
    prove: (oldSize: number) => Promise.all(consistencyRanges(oldSize, size).map((range) => hashOfRange(range, read))),
  };
}

async function startWitness(file = join(folder, `${randomUUID()}.checkpoints`), signer = witness) {
  const signed = CheckpointFile.open(file);
  const app = buildWitness({ signer, logs: () => [log], signed, now: () => now }, pino({ enabled: false }));
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return {
    url,
    file,
    signed,
    post: async (body: string) => {
      const response = await fetch(`${url}/add-checkpoint`, { method: 'POST', body });
      return { status: response.status, type: response.headers.get('content-type'), text: await response.text() };
    },
    async [Symbol.asyncDispose]() {
      await app.close();
      signed.close();
    },
  };
}

const bodyOf = (oldSize: number, hashes: readonly Buffer[], note: string) =>
  [`old ${oldSize}`, ...hashes.map((hash) => hash.toString('base64')), '', note].join('\n');
const never = new AbortController().signal;
const named = { name: 'w1', verifier: witness };

test.each(['ours', 'the one from the page'])('a log that grows is cosigned each time by %s', async (which) => {
  const logs = new Map([[log.name, log.publicKey]]);
  await using running = which === 'ours' ? await startWitness() : await startPlainWitness({ ...witness, logs });
  let known = 0;
  for (const size of [1, 2, 3, 7, 8, 8, 20, 64, 65]) {
    const checkpoint = logOf(size);
    const result = await askWitness({ ...named, url: running.url }, checkpoint, known, never);
    if (!('line' in result)) throw new Error(`${size}: ${result.fault}`);
    expect(
      cosignedAt(parseNote(checkpoint.note + result.line) ?? { text: '', signatures: [] }, witness),
    ).toBeGreaterThan(0);
    known = size;
  }
  // A client that does not know the size the witness has gets it, and asks again.
  expect(await askWitness({ ...named, url: running.url }, logOf(70), 0, never)).toHaveProperty('line');
  expect(await askWitness({ ...named, url: running.url }, logOf(71), 5, never)).toHaveProperty('line');
  // A log that was set back, and one that diverged.
  expect(await askWitness({ ...named, url: running.url }, logOf(70), 71, never)).toEqual({
    fault: 'has signed a tree of 71 leaves, which is more than there are',
    isRefused: true,
  });
  expect(await askWitness({ ...named, url: running.url }, logOf(80, log, 'other'), 71, never)).toEqual({
    fault: expect.stringMatching(/^answered 422/),
    isRefused: true,
  });
  expect(await askWitness({ ...named, url: running.url }, logOf(3, signerOf('example.com/log/2')), 0, never)).toEqual({
    fault: expect.stringMatching(/^answered 404/),
    isRefused: true,
  });
});

test('the witness answers as tlog-witness says, and what it refuses changes nothing', async () => {
  await using running = await startWitness();
  const [three, seven] = [logOf(3), logOf(7)];
  expect(await running.post(bodyOf(0, [], three.note))).toMatchObject({ status: 200 });
  const refused: [body: string, status: number][] = [
    ['', 400],
    [three.note, 400],
    [bodyOf(0, [], 'no note\n'), 400],
    [`old 03${bodyOf(3, await seven.prove(3), seven.note).slice(5)}`, 400],
    [bodyOf(3, [Buffer.alloc(31)], seven.note), 400],
    [
      bodyOf(
        3,
        Array.from({ length: 64 }, () => Buffer.alloc(32)),
        seven.note,
      ),
      400,
    ],
    [bodyOf(4, [], three.note), 400],
    [bodyOf(0, [], logOf(3, signerOf('example.com/unknown')).note), 404],
    [bodyOf(3, await seven.prove(3), logOf(7, signerOf(log.name)).note), 403],
    [bodyOf(3, await seven.prove(3), seven.note.replace('\n7\n', '\n8\n')), 403],
    [bodyOf(2, await seven.prove(2), seven.note), 409],
    [bodyOf(0, [], seven.note), 409],
    [bodyOf(3, await logOf(7, log, 'other').prove(3), seven.note), 422],
    [bodyOf(3, (await seven.prove(3)).slice(1), seven.note), 422],
    [
      bodyOf(
        3,
        Array.from({ length: 63 }, () => Buffer.alloc(32)),
        seven.note,
      ),
      422,
    ],
    [bodyOf(3, [], logOf(3, log, 'other').note), 422],
  ];
  for (const [body, status] of refused) {
    const answer = await running.post(body);
    expect(answer.status, body.slice(0, 60)).toBe(status);
    if (status === 409) expect(answer).toMatchObject({ text: '3\n', type: 'text/x.tlog.size' });
    expect(running.signed.newest(log.name)?.size).toBe(3);
  }
  expect(await running.post(bodyOf(3, await seven.prove(3), seven.note))).toMatchObject({ status: 200 });
});

test('a request of 256 KiB is accepted, and a larger one is 413', async () => {
  await using running = await startWitness();
  const body = bodyOf(0, [], logOf(1).note);
  const filled = (bytes: number) => body + 'x'.repeat(bytes - Buffer.byteLength(body));
  expect((await running.post(filled(maxWitnessBody))).status).toBe(400);
  expect((await running.post(filled(maxWitnessBody + 1))).status).toBe(413);
  expect((await fetch(`${running.url}/`)).status).toBe(404);
});

test('two witnesses on one file never sign two trees of one size, and a new process resumes from the file', async () => {
  await using one = await startWitness();
  const second = await startWitness(one.file);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, turn) =>
      [one, second][turn % 2]?.post(bodyOf(0, [], logOf(5, log, `leaf${turn}`).note)),
    ),
  );
  expect(answers.filter((answer) => answer?.status === 200)).toHaveLength(1);
  expect(answers.filter((answer) => answer?.status === 409 && answer.text === '5\n')).toHaveLength(19);
  await second[Symbol.asyncDispose]();
  await using third = await startWitness(one.file);
  expect(await third.post(bodyOf(0, [], logOf(9).note))).toMatchObject({ status: 409, text: '5\n' });
  expect(statSync(one.file).mode & 0o777).toBe(0o600);
});

test('a file in another format is not opened', () => {
  const file = join(folder, 'other');
  writeFileSync(file, 'something else, long enough to be no empty file of SQLite');
  expect(() => CheckpointFile.open(file)).toThrow('is no file of newest checkpoints');
  expect(() => CheckpointFile.open(join(folder, 'none', 'there'))).toThrow('cannot open');
});

test('an invalid response of a witness gives no cosignature', async () => {
  const otherSigner = signerOf('witness.example/other', signatureTypes.cosignature);
  await using running = await startWitness(undefined, otherSigner);
  expect(await askWitness({ ...named, url: running.url }, logOf(1), 0, never)).toEqual({
    fault: 'answered without a signature of its key',
  });
  await using sameName = await startWitness(undefined, { ...otherSigner, name: witness.name, id: witness.id });
  expect(await askWitness({ ...named, url: sameName.url }, logOf(1), 0, never)).toEqual({
    fault: 'answered with a signature that is not for this checkpoint',
  });
  expect(await askWitness({ ...named, url: 'http://127.0.0.1:1' }, logOf(1), 0, never)).toEqual({
    fault: 'could not be reached',
  });
});

test('the reason of a refusal is bounded and on one line; a failure is not a refusal', async () => {
  let answer = { status: 422, text: '' };
  const liar = createServer((_request, response) => response.writeHead(answer.status).end(answer.text));
  await new Promise<void>((resolve) => liar.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(liar.address() as AddressInfo).port}`;
  const ask = () => askWitness({ ...named, url }, logOf(1), 0, never);
  try {
    expect(await ask()).toEqual({ fault: 'answered 422', isRefused: true });
    answer = { status: 422, text: `another tree\n\u001b[2J${'x'.repeat(500)}` };
    const refused = await ask();
    expect(refused).toMatchObject({ isRefused: true });
    expect('fault' in refused && refused.fault).toMatch(
      /^answered 422: another tree\\u\{000a\}\\u\{001b\}\[2Jx{180,190}$/,
    );
    for (const status of [408, 429, 503]) {
      answer = { status, text: 'later' };
      expect(await ask()).toEqual({ fault: `answered ${status}: later` });
    }
    answer = { status: 409, text: '9\n' };
    expect(await ask()).toMatchObject({ fault: expect.stringContaining('9 leaves'), isRefused: true });
  } finally {
    liar.close();
  }
});

test('a policy says how many witnesses are needed, in groups of groups', () => {
  const witnesses = ['a', 'b', 'c', 'd'].map((name) => signerOf(`witness.example/${name}`, signatureTypes.cosignature));
  const lines = witnesses.map((one, place) => `witness w${place} ${formatVerifierKey(one)}`);
  const policy = parsePolicy(
    [
      `# ours`,
      `log\t${formatVerifierKey(log)}`,
      '',
      ...lines,
      'group two 2 w0 w1 w2',
      ' group both all two w3',
      'quorum both',
    ].join('\n'),
  );
  const text = formatCheckpoint({ origin: log.name, size: 1, root: hashLeaf('one') });
  const isEnough = (places: number[]) => {
    const note = places.map((place) => cosign(text, witnesses[place] ?? witness, 1_700_000_000)).join('');
    const seen = witnessesOf(parseNote(`${text}\n${note}`) ?? { text, signatures: [] }, policy);
    return seen !== 'wrong' && policy.isEnough(new Set(seen.keys()));
  };
  expect(isEnough([0, 1, 3])).toBe(true);
  expect(isEnough([0, 1, 2])).toBe(false);
  expect(isEnough([0, 3])).toBe(false);
  expect(isEnough([3, 3, 0, 0])).toBe(false);
  expect(parsePolicy('quorum none').isEnough(new Set())).toBe(true);
});

const key = formatVerifierKey(witness);
test.each([
  ['', 'the quorum line is missing'],
  ['quorum w', 'line 1: w is not defined on a line before'],
  [`witness w ${key}\nquorum w\nquorum w`, 'line 3: there is a quorum already'],
  [`witness w ${key}\nwitness v ${key}`, 'line 2: the key is there twice'],
  [`witness none ${key}`, 'line 1: a name is missing, and "none" is taken'],
  [`witness w ${formatVerifierKey(log)}`, 'line 1: the verifier key is not one of a witness'],
  [`log ${key}`, 'line 1: the verifier key is not one of a log'],
  [`witness w ${key} ftp://w`, 'line 1: the URL is not one of http or https'],
  [`witness w ${key}\ngroup g 2 w`, 'line 2: the count of a group is any, all, or 1 to 1'],
  [`witness w ${key}\ngroup g any w\ngroup h any w`, 'line 3: w is a member twice'],
  ['what', 'line 1: a line begins with log, witness, group or quorum'],
  ['# a\u0001\nquorum none', 'line 1: control characters are not allowed'],
  ['quorum none\u0001', 'line 1: control characters are not allowed'],
])('no policy: %s', (text, reason) => {
  expect(() => parsePolicy(text)).toThrow(reason);
});
