import { execFile } from 'node:child_process';
import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Annals } from '@annals/client';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { ExportPiece, ExportProgress } from '../../../src/core/export-history.ts';
import { holdTenant } from '../../../src/history/retention/hold.ts';
import { setRetention } from '../../../src/history/retention/retention.ts';
import { readRestriction } from '../../../src/history/search/plan/restriction.ts';
import { withProofs } from '../../../src/proof/bundle/export-bundle.ts';
import { linesOf } from '../../../src/proof/bundle/read-bundle.ts';
import { cosign, openCheckpoint } from '../../../src/proof/log/checkpoint.ts';
import { hashLeaf, parseInclusionProof } from '../../../src/proof/log/merkle.ts';
import { parseVerifierKey } from '../../../src/proof/log/note.ts';
import { sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { makeProofKey } from '../../../src/proof/log/signer.ts';
import { hashesOf } from '../../../src/proof/log/tiles.ts';
import { countAltered, storeCheck } from '../../../src/proof/verify/check-store.ts';
import { verifyBundle } from '../../../src/proof/verify/verify-bundle.ts';
import { verifyProof } from '../../../src/proof/verify/verify-proof.ts';
import { givePositions } from '../../../src/recording/positions.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { annals } from '../../support/server/command.ts';
import { buildGo, hasGo } from '../../support/server/go-program.ts';
import { changeOf } from '../../support/server/history.ts';
import { startTestServer } from '../../support/server/server.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { signerOf } from './signers.ts';

const now = Date.UTC(2026, 8, 15);
const anyKey = Buffer.alloc(32).toString('base64');

const folder = temporaryFolder();
const keyFile = join(folder, 'proof.key');
makeProofKey(keyFile);
const ofServer = { ANNALS_PROOF_KEY_FILE: keyFile, ANNALS_BASE_URL: 'https://history.example' };
const server = closeAfterAll(await startTestServer({ environment: ofServer }));

async function record(tenant: string, count: number): Promise<void> {
  const { db } = server.context;
  await createRecorder(db, tenant, () => now)(Array.from({ length: count }, (_none, i) => changeOf({ at: now + i })));
  await givePositions(db, tenant);
}

/** Assigns positions whose entries are gone. */
async function losePositions(tenant: string, from: number, to: number): Promise<void> {
  await server.database.pool.query(
    `insert into change_position (tenant, first, ats, sequences, recorded, fingerprints, oldest, newest)
       select $1, first, gone, gone, gone, gone::integer[], -1, -1
         from generate_series($2::bigint, $3::bigint, 4096) as first
         cross join lateral (
           select array_fill(-1::bigint, array[least(4096, $3::bigint - first + 1)]::integer[]) as gone
         ) g`,
    [tenant, from, to],
  );
}

/** Seals everything, as if a minute had passed. */
async function seal(tenant: string): Promise<void> {
  const { db, sealing } = server.context;
  if (sealing === undefined) throw new Error('the server seals nothing');
  await sql`update proof_log set signed_at = null where tenant = ${tenant}`.execute(db);
  while (await sealPortion(db, tenant, sealing));
  await sql`update proof_log set signed_at = null where tenant = ${tenant}`.execute(db);
  await sealPortion(db, tenant, sealing);
}

/** Reads of the log of a tenant. */
async function readerOf(tenant: string) {
  const token = await server.token(tenant);
  return (path: string) => server.call(`/changelog/${tenant}/log${path}`, { token });
}

async function vkeyOf(tenant: string): Promise<string> {
  const environment = {
    DATABASE_URL: server.database.url,
    ANNALS_SECRET_KEY: anyKey,
    ANNALS_PROOF_KEY_FILE: keyFile,
    ANNALS_BASE_URL: 'https://history.example',
  };
  const { code, stdout, stderr } = await annals(['proof', 'vkey', '--tenant', tenant], environment);
  expect([code, stderr]).toEqual([0, '']);
  return stdout.trim();
}

test('the log is empty before the first checkpoint, then serves the newest one with its tiles', async () => {
  const read = await readerOf('acme');
  expect((await read('/checkpoint')).status).toBe(404);
  expect((await read('/tile/0/000.p/1')).status).toBe(404);
  // The key is available before there is anything to seal.
  const vkey = await vkeyOf('acme');
  expect(vkey).toMatch(/^history\.example\/log\/[0-9a-f]{32}\+[0-9a-f]{8}\+[\w+/=]+$/);
  await record('acme', 300);
  await seal('acme');
  expect(await vkeyOf('acme')).toBe(vkey);

  const answer = await read('/checkpoint');
  expect(answer.headers.get('cache-control')).toBe('private, no-cache');
  expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(openCheckpoint(await answer.text(), parseVerifierKey(vkey))).toMatchObject({ size: 301 });

  const full = await read('/tile/0/000');
  expect([full.headers.get('content-type'), full.headers.get('cache-control')]).toEqual([
    'application/octet-stream',
    'private, max-age=31536000, immutable',
  ]);
  const bytes = async (path: string) => Buffer.from(await (await read(path)).arrayBuffer());
  const [tile, partial, above] = await Promise.all(
    ['0/000', '0/001.p/45', '1/000.p/1'].map((one) => bytes(`/tile/${one}`)),
  );
  expect([tile?.length, partial?.length, above?.length]).toEqual([8192, 45 * 32, 32]);
  expect(await bytes('/tile/0/000.p/7')).toEqual(tile?.subarray(0, 7 * 32));
  const entries = await bytes('/tile/entries/001.p/45');
  const texts: string[] = [];
  for (let at = 0; at < entries.length; at += 2 + entries.readUInt16BE(at)) {
    texts.push(entries.subarray(at + 2, at + 2 + entries.readUInt16BE(at)).toString());
  }
  expect(texts.map(hashLeaf)).toEqual(hashesOf(partial ?? Buffer.alloc(0)));
  expect(texts[0]).toMatch(/^annals-leaf-v1\n257\n[\w+/]{43}=\n$/);
  expect(texts.at(-1)).toMatch(/^annals-receipt-v1\n301\n\{"what":"first sealing","positions":\[\[1,300\]\],.*\}\n$/);

  const none = ['0/001', '0/001.p/46', '0/002.p/1', '1/000', '1/000.p/2', '64/000.p/1', '00/000', '0/0', '0/x000/000'];
  for (const path of [...none, '-1/000', 'entries/001.p/46', 'entries/1', 'data/000', '0/000.p/256', '0/000.p/0']) {
    expect([path, (await read(`/tile/${path}`)).status]).toEqual([path, 404]);
  }
});

test('the state of the log has its key, its newest checkpoint and the result of the last check', async () => {
  const read = await readerOf('acme');
  const state = await (await read('')).json();
  const checkpoint = await (await read('/checkpoint')).text();
  expect(state).toEqual({
    origin: checkpoint.split('\n')[0],
    vkey: await vkeyOf('acme'),
    size: 301,
    unsealed: 0,
    signedAt: expect.stringMatching(/Z$/),
    checkpoint,
    witnesses: [],
    receipts: [{ position: 301, what: 'first sealing', at: expect.stringMatching(/Z$/), by: 'annals', changes: 300 }],
  });
  const { db } = server.context;
  await storeCheck(db, 'acme', { at: now, isRight: false });
  expect(await countAltered(db)).toBe(1);
  await sql`update proof_log set checkpoint = ${checkpoint + cosign('x', signerOf('w.example', 4), 1_700_000_000)}
    where tenant = 'acme'`.execute(db);
  expect(await (await read('')).json()).toMatchObject({
    witnesses: [{ name: 'w.example', signedAt: '2023-11-14T22:13:20.000Z' }],
    lastCheck: { at: new Date(now).toISOString(), right: false },
  });
  await sql`update proof_log set checkpoint = ${checkpoint} where tenant = 'acme'`.execute(db);
});

test('each change and each receipt has its own proof, verifiable with the key alone', async () => {
  const read = await readerOf('acme');
  const vkey = await vkeyOf('acme');
  for (const position of [1, 17, 256, 257, 300, 301]) {
    const answer = await read(`/proof?position=${position}`);
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(verifyProof(await answer.text(), [vkey])).toMatchObject({ position, size: 301, hidden: [] });
  }
  const { pool } = server.database;
  await pool.query(`update change_entry set entity_id = 'x' where tenant = 'acme' and at = $1`, [now + 16]);
  const changed = await (await read('/proof?position=17')).text();
  expect(verifyProof(changed, [vkey])).toBe('shows an entry that is not what was sealed');
  await pool.query(`delete from change_entry where tenant = 'acme' and at = $1`, [now + 16]);
  expect((await read('/proof?position=17')).status).toBe(404);
  for (const [query, status] of [
    ['', 400],
    ['?position=0', 400],
    ['?position=x', 400],
    ['?position=302', 404],
  ] as const) {
    expect([query, (await read(`/proof${query}`)).status]).toEqual([query, status]);
  }
});

test('the log needs its scope, and is refused to restricted clients', async () => {
  await server.createTenant('scoped');
  await record('scoped', 1);
  await seal('scoped');
  const paths = ['', 'checkpoint', 'tile/0/000.p/1', 'proof?position=1'].map(
    (path) => `/changelog/scoped/log${path && `/${path}`}`,
  );
  const tokens = {
    200: await server.token('scoped', { scope: 'changelog.proof_read' }),
    403: await server.token('scoped', { scope: 'changelog.changelog_manage changelog.access_read' }),
  };
  for (const [status, token] of Object.entries(tokens)) {
    for (const path of paths) expect((await server.call(path, { token })).status).toBe(Number(status));
  }
  const restriction = readRestriction([{ query: 'entity:order', hide: [] }]);
  const restricted = await server.token('scoped', { scope: 'changelog.changelog_read', restriction });
  for (const path of paths) expect((await server.call(path, { token: restricted })).status).toBe(403);
  const token = await server.token('elsewhere', { scope: 'changelog.proof_read' });
  expect((await server.call('/changelog/scoped/log/checkpoint', { token })).status).toBe(403);
});

test('annals proof creates a key once, and prints what a witness needs', async () => {
  const file = join(folder, 'other.key');
  // The variable may name the file before it exists.
  const environment = { ANNALS_PROOF_KEY_FILE: file, DATABASE_URL: server.database.url, ANNALS_SECRET_KEY: anyKey };
  const made = await annals(['proof', 'key', file], environment);
  expect(made).toEqual({ code: 0, stdout: `${JSON.stringify({ file })}\n`, stderr: '' });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const again = await annals(['proof', 'key', file], environment);
  expect([again.code, again.stderr]).toEqual([1, `annals: ${file} is there already\n`]);
  expect((await annals(['proof', 'key'])).code).toBe(2);

  await server.createTenant('witnessed');
  await record('witnessed', 1);
  await seal('witnessed');
  const logs = (await annals(['proof', 'logs'], environment)).stdout.split('\n');
  expect(logs).toContain(`log ${await vkeyOf('witnessed')}`);
  expect(logs.join()).not.toContain('witnessed');

  const missing = join(folder, 'missing.key');
  const served = await annals(['serve'], { ...environment, PORT: '0', ANNALS_PROOF_KEY_FILE: missing });
  expect([served.code, served.stdout]).toEqual([1, '']);
  expect(served.stderr).toContain(`${missing}, which cannot be read. To make one: annals proof key ${missing}`);
  const none = await annals(['proof', 'vkey', '--tenant', 'witnessed'], {
    ...environment,
    ANNALS_PROOF_KEY_FILE: missing,
  });
  expect([none.code, none.stdout]).toEqual([1, '']);
});

test('proof of a change needs the log scope, its fields changelog_read, and its context changelog_manage', async () => {
  const { db } = server.context;
  const scoped = (...scopes: string[]) =>
    server.token('proved', { scope: ['changelog.proof_read', ...scopes].join(' ') });
  const tokens = {
    proof: await scoped(),
    reading: await scoped('changelog.changelog_read'),
    managing: await scoped('changelog.changelog_manage'),
  };
  const changes = [1, 2, 3].map((n) => changeOf({ at: now + n, entityId: `o-${n}`, context: '{"ip":"192.0.2.1"}' }));
  await createRecorder(db, 'proved', () => now)(changes);
  await givePositions(db, 'proved');
  await sql`delete from change_entry where tenant = 'proved' and entity_id = 'o-3'`.execute(db);
  await seal('proved');
  const vkey = await vkeyOf('proved');
  const ask = (query: string, token: string) => server.call(`/changelog/proved/log/proof?${query}`, { token });
  const proofOf = async (query: string, token: string) => {
    const answer = await ask(query, token);
    expect([answer.status, answer.headers.get('cache-control')]).toEqual([200, 'private, no-cache']);
    return await answer.text();
  };
  const extraOf = (proof: string) => parseInclusionProof(proof)?.extra?.toString() ?? '';

  const read = await proofOf('position=2', tokens.reading);
  expect(verifyProof(read, [vkey])).toMatchObject({ position: 2, size: 4, hidden: [] });
  const fieldsOf = (proof: string) => JSON.parse(extraOf(proof)).fields.slice(0, 6);
  const hidden = { hash: expect.any(String) };
  expect(fieldsOf(read)).toEqual([hidden, hidden, String(now + 2), 'update', 'order', 'o-2']);
  const whole = await proofOf('position=2&context=true', tokens.managing);
  expect(verifyProof(whole, [vkey])).toMatchObject({ position: 2, size: 4 });
  expect(fieldsOf(whole).slice(0, 2)).toEqual([hidden, '{"ip":"192.0.2.1"}']);
  const receipt = await proofOf('position=4', tokens.proof);
  expect(verifyProof(receipt, [vkey])).toMatchObject({ position: 4, hidden: [] });
  const client = new Annals({ baseUrl: server.baseUrl, tenant: 'proved', token: () => tokens.managing });
  expect(await client.proofs.checkpoint()).toBe(parseInclusionProof(read)?.checkpoint);
  expect([await client.proofs.get(2), await client.proofs.get(2, { context: true })]).toEqual([read, whole]);
  expect(await client.proofs.state()).toMatchObject({ vkey, size: 4, receipts: [{ position: 4 }] });
  // A listed change has a ref but no position.
  const page = await client.history.list({
    q: 'entity:order entityId:o-2 occurredAt:>"2026-09-01T00:00:00Z"',
    ref: true,
  });
  const { ref = '' } = page.items[0] ?? {};
  expect(await client.proofs.get({ ref })).toBe(await client.proofs.get(2));
  expect((await ask(`position=2&ref=${ref}`, tokens.reading)).status).toBe(400);
  expect((await ask('ref=x', tokens.reading)).status).toBe(400);
  // Without changelog_read, only the commitment.
  expect(Object.keys(JSON.parse(extraOf(await proofOf('position=2', tokens.proof))))).toEqual([
    'position',
    'commitment',
  ]);

  expect((await ask('position=2&context=true', tokens.reading)).status).toBe(403);
  expect((await ask('position=3', tokens.reading)).status).toBe(404);
  expect((await ask('position=5', tokens.reading)).status).toBe(404);
  expect((await ask('position=0', tokens.reading)).status).toBe(400);
  expect((await ask('', tokens.reading)).status).toBe(400);
  expect((await ask('position=1', await server.token('proved', { scope: 'changelog.changelog_manage' }))).status).toBe(
    403,
  );
  // What retention has hidden is not shown.
  await setRetention(db, 'proved', 1, now + 30 * 86_400_000);
  expect((await ask('position=2', tokens.managing)).status).toBe(404);
});

test('an export with proof is a bundle, even if interrupted at each block', async () => {
  const token = await server.token('exported');
  await record('exported', 600);
  await seal('exported');
  const vkey = await vkeyOf('exported');
  const client = new Annals({ baseUrl: server.baseUrl, tenant: 'exported', token: () => token });
  const { jobId } = await client.jobs.export({ format: 'NDJSON', proof: true });
  expect((await client.jobs.wait(jobId)).metadata).toMatchObject({ proof: true, entries: 600 });
  const whole = await new Response((await client.jobs.content(jobId)).body).text();
  expect(await judged(whole, vkey)).toMatchObject({ isRight: true, verified: 600 });
  await record('exported', 1);
  const pieces: string[] = [];
  const { exportHistory, readBundle } = server.context;
  const { run } = withProofs(exportHistory, readBundle, 1);
  const request = { tenant: 'exported', q: '', format: 'NDJSON', proof: true, askedAt: now } as const;
  let resume: ExportProgress | undefined;
  for (let isOver = false; !isOver; ) {
    const take = async ({ text, of, last }: ExportPiece) => {
      pieces.push(text);
      resume = { ...of, after: last };
      isOver = text.endsWith('{"end":601}\n');
      if (!isOver) throw new Error('interrupted');
    };
    await run({ ...request, resume, signal: new AbortController().signal }, take).catch((error: Error) =>
      expect(error.message).toBe('interrupted'),
    );
    await seal('exported');
  }
  expect(pieces.map((piece) => piece.length > 0)).toEqual([true, true, true]);
  expect(await judged(pieces.join(''), vkey)).toMatchObject({ isRight: true, verified: 600 });

  const reader = await server.token('exported', { scope: 'changelog.changelog_read' });
  const ask = async (body: object, as: string) => {
    return (await server.call('/ai-service/exported/jobs', { token: as, json: { type: 'EXPORT', ...body } })).status;
  };
  expect(await ask({ format: 'NDJSON', proof: true }, reader)).toBe(403);
  expect(await ask({ format: 'CSV', proof: true }, token)).toBe(400);
});

async function judged(text: string, key: string): Promise<{ isRight: boolean; verified: number | undefined }> {
  const read = () => linesOf(Readable.from([Buffer.from(text)]));
  const { isRight, counts } = await verifyBundle(read, { keys: [key], accept: new Set() }, () => {});
  return { isRight, verified: counts.get('verified') };
}

test('a check of all tenants continues after one that cannot be checked yet, and skips one without changes', async () => {
  const environment = { DATABASE_URL: server.database.url, ANNALS_SECRET_KEY: anyKey, ANNALS_PROOF_KEY_FILE: keyFile };
  for (const tenant of ['checked1', 'checked2', 'checked3', 'checked4']) await server.createTenant(tenant);
  expect((await annals(['proof', 'vkey', '--tenant', 'checked1'], environment)).code).toBe(0);
  for (const tenant of ['checked2', 'checked3', 'checked4']) {
    await record(tenant, 2);
    await seal(tenant);
  }
  // Its receipt waits for the next checkpoint, which does not come within the minute.
  await holdTenant(server.context.db, 'checked2', 'audit', now);
  await sql`delete from proof_log where tenant = 'checked4'`.execute(server.context.db);
  const { code, stdout } = await annals(['proof', 'check'], environment);
  const results = stdout.split('\n').filter((line) => line.startsWith('checked'));
  expect([code, results]).toEqual([
    1,
    [
      'checked2: not checked: the receipt at position 4 is not sealed yet; the next checkpoint comes within a minute',
      'checked3: nothing is wrong',
      'checked4: the history was sealed, and its log is gone',
    ],
  ]);
});

test.skipIf(!hasGo)(
  "Go's sumdb/note and sumdb/tlog read the checkpoints, the tiles, the leaves and the proofs (needs golang-go and golang-golang-x-mod-dev)",
  async () => {
    const judge = buildGo(fileURLToPath(new URL('judge', import.meta.url))) ?? '';
    const read = await readerOf('judged');
    const token = await server.token('judged');
    const old = join(folder, 'old-checkpoint');
    await record('judged', 17);
    await seal('judged');
    await writeFile(old, await (await read('/checkpoint')).text());
    const vkey = await vkeyOf('judged');
    for (const [count, size] of [
      [238, 256],
      [1, 257],
      [400, 657],
      // Up to a tile of the second level.
      [64_900, 65_557],
    ] as const) {
      if (count < 1_000) await record('judged', count);
      else await losePositions('judged', size - count + 1, size);
      await seal('judged');
      const { stdout } = await promisify(execFile)(judge, [`${server.baseUrl}/changelog/judged/log`, token, vkey, old]);
      expect(stdout).toBe(`${size} of ${size} leaves\n`);
    }
  },
);
