import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, expect, test } from 'vitest';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import { tenantsWith } from '../../../src/postgres/tenants/tenants-with.ts';
import { readLog } from '../../../src/proof/log/log-store.ts';
import { formatVerifierKey, parseNote, parseVerifierKey, signatureTypes } from '../../../src/proof/log/note.ts';
import { parseLogs, parsePolicy, witnessesOf } from '../../../src/proof/log/policy.ts';
import { sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { makeProofKey, openSigner } from '../../../src/proof/log/signer.ts';
import { Cosigner, openCosigner, uncosigned } from '../../../src/proof/witness/cosign-logs.ts';
import { givePositions } from '../../../src/recording/positions.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { annals, startAnnals } from '../../support/server/command.ts';
import { createTestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { startPlainWitness } from './plain-witness.ts';
import { signerOf } from './signers.ts';

const now = () => Date.UTC(2026, 8, 15);
const { signal } = new AbortController();

const database = await createTestDatabase();
const db = database.db;
const folder = temporaryFolder();
makeProofKey(join(folder, 'key'));
const sealing = { signer: openSigner(join(folder, 'key'), 'annals.example'), now };
for (const tenant of ['one', 'two']) {
  await createTenant(db, tenant);
  await recordAndSeal(tenant, 3);
}

afterAll(async () => {
  sealing.signer.newest.close();
  await database.drop();
});

async function recordAndSeal(tenant: string, count: number): Promise<void> {
  const begin = now() + Math.floor(performance.now());
  await createRecorder(db, tenant, now)(Array.from({ length: count }, (_none, i) => changeOf({ at: begin + i })));
  await givePositions(db, tenant);
  for (const _twice of [1, 2]) {
    await sql`update proof_log set signed_at = null where tenant = ${tenant}`.execute(db);
    await sealPortion(db, tenant, sealing);
  }
}

/** Asks all witnesses now, and returns their faults. */
async function cosign(policy: string): Promise<string[]> {
  const faults: string[] = [];
  await sql`update proof_log set cosign_after = null`.execute(db);
  const onAnswer = (witness: string, _outcome: string, fault?: string) => {
    if (fault !== undefined) faults.push(`${witness} ${fault}`);
  };
  const findTenants = () => tenantsWith(db, uncosigned);
  await new Cosigner(parsePolicy(policy)).cosignAll(db, { signal, findTenants, onAnswer });
  return faults;
}

/** Which witnesses of the policy have signed the newest checkpoint. */
async function signedBy(tenant: string, policy: string): Promise<string[] | 'wrong'> {
  const note = parseNote((await readLog(db, tenant))?.checkpoint ?? '');
  const seen = note === undefined ? 'wrong' : witnessesOf(note, parsePolicy(policy));
  return seen === 'wrong' ? seen : [...seen.keys()];
}

test('the command is a witness of all logs in its file', { timeout: 60_000 }, async () => {
  const logs = join(folder, 'logs');
  const names = await Promise.all(['one', 'two'].map(async (tenant) => `log ${(await readLog(db, tenant))?.vkey}\n`));
  writeFileSync(logs, `# told of\n${names[0]}`);
  makeProofKey(join(folder, 'witness'));
  const options = ['--name', 'example.org/w', '--key', join(folder, 'witness'), '--logs', logs, '--port', '0'];
  const running = startAnnals(['witness', ...options], {});
  try {
    const line = await running.firstLine;
    expect(line).toMatch(/^witness example\.org\/w example\.org\/w\+[0-9a-f]{8}\+\S+ http:\/\/127\.0\.0\.1:\d+$/);
    const policy = `${line.replace('witness example.org/w ', 'witness w1 ')}\nquorum w1\n`;
    expect(await cosign(policy)).toEqual(['w1 answered 404: the witness does not know this log']);
    const second = await annals(['witness', ...options], {});
    expect(second).toMatchObject({ code: 1, stdout: '' });
    expect(second.stderr).toContain('another annals witness uses');
    expect(await signedBy('one', policy)).toEqual(['w1']);
    expect(await signedBy('two', policy)).toEqual([]);
    writeFileSync(logs, names.join(''));
    expect(await cosign(policy)).toEqual([]);
    expect(await signedBy('two', policy)).toEqual(['w1']);
    // Signed by all: no witness is contacted again until the next checkpoint.
    expect(await tenantsWith(db, uncosigned)).toEqual([]);
    await recordAndSeal('one', 5);
    expect(await signedBy('one', policy)).toEqual([]);
    expect(await cosign(policy)).toEqual([]);
    expect(await signedBy('one', policy)).toEqual(['w1']);
  } finally {
    running.process.kill('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 0 });
  }
});

test('a witness written from the specification signs our logs, and finds no conflicting checkpoints', async () => {
  const witness = signerOf('witness.example/plain', signatureTypes.cosignature);
  const logs = new Map<string, ReturnType<typeof parseVerifierKey>['publicKey']>();
  for (const tenant of ['one', 'two']) {
    const { origin, vkey } = (await readLog(db, tenant)) ?? { origin: '', vkey: '' };
    logs.set(origin, parseVerifierKey(vkey).publicKey);
  }
  await using plain = await startPlainWitness({ ...witness, logs });
  const unreachable = signerOf('witness.example/away', signatureTypes.cosignature);
  const policy = `witness p ${formatVerifierKey(witness)} ${plain.url}/
    witness away ${formatVerifierKey(unreachable)} http://127.0.0.1:1
    group any any p away
    quorum any`;
  for (const count of [1, 300, 7]) {
    await recordAndSeal('one', count);
    await sql`update proof_log set cosigned = 0`.execute(db);
    expect(await cosign(policy)).toEqual(['away could not be reached']);
    expect(await signedBy('one', policy)).toEqual(['p']);
  }
  expect(new Set(plain.seen.map(({ origin, size }) => `${origin} ${size}`)).size).toBe(
    new Set(plain.seen.map(({ origin, size, root }) => `${origin} ${size} ${root}`)).size,
  );
  // A line for another checkpoint, inserted from outside, is removed by the next round.
  await sql`update proof_log set checkpoint = replace(checkpoint, '— witness.example/plain ', '— witness.example/plain A')
    where tenant = 'two'`.execute(db);
  await sql`update proof_log set cosigned = 0`.execute(db);
  await cosign(policy);
  expect(await signedBy('two', policy)).toEqual(['p']);
});

test.each([
  ['no policy', 'what', 'in which line 1: a line begins with log, witness, group or quorum'],
  ['no witness with a URL', 'quorum none', 'which has no witness with a URL'],
])('a policy file with %s stops the start', (_what, text, message) => {
  const file = join(folder, 'policy');
  writeFileSync(file, text);
  expect(() => openCosigner(file)).toThrow(`ANNALS_PROOF_POLICY names ${file}, ${message}`);
  expect(() => openCosigner(join(folder, 'none'))).toThrow('which cannot be read');
});

test.each([
  [['--name', 'w'], 2, 'witness needs --name, --key and --logs'],
  [['--name', 'a b', '--key', 'key', '--logs', 'key'], 2, '--name: a key name has no spaces'],
  [['--name', 'w', '--key', 'none', '--logs', 'key'], 1, '--key names'],
  [['--name', 'w', '--key', 'key', '--logs', 'key'], 1, 'line 1: a line begins with log'],
  [['--name', 'w', '--key', 'key', '--logs', 'key', '--port', '65536'], 2, '--port is a number from 0 to 65535'],
])('a witness does not start with %j', async (args, code, message) => {
  const paths = args.map((arg) => (['key', 'none'].includes(arg) ? join(folder, arg) : arg));
  const result = await annals(['witness', ...paths], {});
  expect(result).toMatchObject({ code, stdout: '' });
  expect(result.stderr).toContain(message);
  expect(result.stderr).not.toContain('PRIVATE');
});

test('the logs of one installation share its key, which no policy allows', () => {
  const key = readFileSync(join(folder, 'logs'), 'utf8');
  expect(parseLogs(key)).toHaveLength(2);
  expect(() => parsePolicy(`${key}quorum none`)).toThrow('the key is there twice');
  expect(() => parseLogs('quorum none')).toThrow('line 1: a line begins with log');
});
