import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createReadBundle } from '../../../src/history/feed/bundle-lines.ts';
import { DictionaryCache } from '../../../src/history/search/names/dictionary-cache.ts';
import { foldHistory } from '../../../src/history/upkeep/fold.ts';
import { findMisfiled } from '../../../src/history/upkeep/misfiled.ts';
import type { Database } from '../../../src/postgres/database.ts';
import { createTenant } from '../../../src/postgres/tenants/tenants.ts';
import type { BundleLine, ReadBundle } from '../../../src/proof/bundle/lines.ts';
import { signCheckpoint } from '../../../src/proof/log/checkpoint.ts';
import { readLog } from '../../../src/proof/log/log-store.ts';
import { type Sealing, sealPortion } from '../../../src/proof/log/seal-tenants.ts';
import { makeProofKey, openSigner } from '../../../src/proof/log/signer.ts';
import { checkHistory } from '../../../src/proof/verify/check-history.ts';
import { countSetBack } from '../../../src/proof/verify/check-store.ts';
import type { Verdict } from '../../../src/proof/verify/verdicts.ts';
import { verifyBundle } from '../../../src/proof/verify/verify-bundle.ts';
import { RegexMatcherPool } from '../../../src/query/regex-pool.ts';
import type { Change } from '../../../src/recording/change.ts';
import { hashOfKind, hashOfStoredActor, type StoredActor } from '../../../src/recording/entry-columns.ts';
import { createRecorder, recordChanges } from '../../../src/recording/record-change.ts';
import { createTestDatabase, type TestDatabase } from '../../support/server/database.ts';
import { changeOf } from '../../support/server/history.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const now = () => Date.UTC(2026, 8, 15);
const entriesOfTenant = 300;

let database: TestDatabase;
let db: Database;
let folder: string;
let sealing: Sealing;
let readBundle: ReadBundle;
const regexes = new RegexMatcherPool();

beforeAll(async () => {
  database = await createTestDatabase();
  db = database.db;
  folder = temporaryFolder();
  makeProofKey(join(folder, 'key'));
  sealing = { signer: openSigner(join(folder, 'key'), 'annals.example'), now };
  const dictionaries = new DictionaryCache(database.pool);
  readBundle = createReadBundle({ pool: database.pool, db, regexes, now, dictionaries });
  for (const [tenant, entries] of [
    ['acme', entriesOfTenant],
    ['other', 5],
  ] as const) {
    await createTenant(db, tenant);
    await record(tenant, entries);
    await seal(tenant);
  }
  await createTenant(db, 'people');
  await createRecorder(
    db,
    'people',
    now,
  )(
    // Those without are as all entries of before the columns were.
    people.map((person, i) => changeOf({ at: now() + i, actor: 'Jane', entityId: `o${i}`, ...person })),
  );
  await foldHistory(db, 'people');
  await seal('people');
  for (const table of tables)
    await sql`create table ${sql.raw(`saved_${table}`)} as table ${sql.raw(table)}`.execute(db);
});

afterAll(async () => {
  sealing.signer.newest.close();
  await database.drop();
});

const uuid = '0190c9a4-7d5e-7c3a-9b1f-3f2a1c0d9e8f';
const people: Partial<Change>[] = [
  {},
  { actorId: 'u-17', correlationId: uuid },
  { actorId: 'u-17', onBehalfOf: { name: 'Acme', id: 'c-1' }, correlationId: 'req-1' },
  { onBehalfOf: { name: 'Acme' } },
  { onBehalfOf: { id: 'c-1' } },
  { actor: 'Kim', correlationId: 'req-1' },
];

async function record(tenant: string, count: number, from = 0): Promise<void> {
  const changes = Array.from({ length: count }, (_none, i) =>
    changeOf({
      at: now() + from + i,
      entityId: `o${i % 9}`,
      actor: i % 2 === 0 ? 'jane' : 'john',
      name: 'Ärzte\u2028',
      schemaVersion: '2',
      context: '{"ip":"192.0.2.1"}',
      marks: '{"whole":true}',
      related: [{ entity: 'customer', entityId: `c${i}` }],
      paths: `{"n":{"before":${i},"after":1.50},"password":{"after":"x"}}`,
    }),
  );
  const [ofClient, ofPerson] = [changes.splice(0, 1), changes.splice(0, 1)];
  const person = { issuer: 'https://login.example', subject: 'kim' };
  await db.transaction().execute(async (transaction) => {
    await recordChanges(transaction, tenant, ofClient, now(), { way: 'relay', by: 'shop' });
    await recordChanges(transaction, tenant, ofPerson, now(), { way: 'service', person });
  });
  await createRecorder(db, tenant, now)(changes);
  await foldHistory(db, tenant);
}

async function seal(tenant: string): Promise<void> {
  do {
    await sql`update proof_log set signed_at = null where tenant = ${tenant}`.execute(db);
  } while (await sealPortion(db, tenant, sealing));
}

const tables = [
  'change_entry',
  'change_related',
  'change_kind',
  'change_path',
  'change_document',
  'change_actor',
  'change_recorder',
  'change_position',
  'change_receipt',
  'proof_leaf',
  'proof_tile',
  'proof_log',
  'proof_redaction',
] as const;

/** Runs a statement as the database owner, checks, and restores the tables. */
async function tampered(
  statement: string,
  tenant = 'acme',
): Promise<{ isRight: boolean; wrong: Verdict[]; findings: string[] }> {
  await sql.raw(statement).execute(db);
  try {
    return await check(tenant);
  } finally {
    const named = tables.filter((table) => statement.includes(table));
    await sql`truncate ${sql.raw(named.join(', '))}`.execute(db);
    for (const table of named) {
      await sql`insert into ${sql.raw(table)} overriding system value table ${sql.raw(`saved_${table}`)}`.execute(db);
    }
  }
}

async function check(tenant = 'acme') {
  const { origin } = (await readLog(db, tenant)) ?? { origin: '' };
  const verdicts: Verdict[] = [];
  const { isRight, findings } = await checkHistory(
    tenant,
    {
      db,
      readBundle,
      findMisfiled,
      key: sealing.signer.keyOf(origin),
      newest: sealing.signer.newest.newest(origin)?.note,
    },
    (verdict) => void verdicts.push(verdict),
  );
  const wrong = verdicts.filter(({ verdict }) => verdict === verdict.toUpperCase());
  return { isRight, wrong, findings: findings.filter((one) => one.isWrong).map(({ text }) => text) };
}

const at = (position: number) =>
  `at = (select (array(select unnest(p.ats)))[${position} - p.first + 1] from change_position p
     where p.tenant = 'acme' and p.first <= ${position} order by p.first desc limit 1)`;
const entry = (position: number) => `tenant = 'acme' and ${at(position)}`;
const otherId = randomUUID();
/** Inserts a copy of an entry with other values; the original is deleted unless it is to stay. */
const remade = (position: number, values: object, goes = true) => `
  with e as (select * from change_entry where ${entry(position)}),
       gone as (delete from change_entry where ${goes} and ${entry(position)})
  insert into change_entry overriding system value
    select (jsonb_populate_record(null::change_entry, to_jsonb(e) || '${JSON.stringify({ identity: randomUUID(), ...values })}')).* from e`;
/** A copy of an entry at another time, with its related row. */
const doubled = (position: number, time: number) => `
  ${remade(position, { sequence: -9, at: time }, false)};
  insert into change_related select tenant, ${time}, -9, item, document, entity, entity_id
    from change_related where ${entry(position)}`;
const gone = (position: number) => [{ from: position, to: position, verdict: 'MISSING' }];

test('an untouched history passes the check, and so do bundles of it', async () => {
  expect(await check()).toEqual({ isRight: true, wrong: [], findings: [] });
  expect(await check('other')).toEqual({ isRight: true, wrong: [], findings: [] });
});

const changesOfEntries: [what: string, statementOf: (position: number) => string, verdict?: 'MISSING'][] = [
  ['its time', (one) => `update change_entry set at = at + 1000000 where ${entry(one)}`, 'MISSING'],
  ['its sequence', (one) => remade(one, { sequence: -1 }), 'MISSING'],
  ['its identity', (one) => `update change_entry set identity = '${otherId}' where ${entry(one)}`],
  ['its document', (one) => `update change_entry set entity_id = 'o77' where ${entry(one)}`],
  ['its name', (one) => `update change_entry set name = 'x' where ${entry(one)}`],
  ['a name taken away', (one) => `update change_entry set name = null where ${entry(one)}`],
  ['its schema version', (one) => `update change_entry set schema_version = '3' where ${entry(one)}`],
  ['a value', (one) => `update change_entry set paths = replace(paths, '1.50', '1.5') where ${entry(one)}`],
  ['a value, which is no JSON any more', (one) => `update change_entry set paths = paths || 'x' where ${entry(one)}`],
  ['its related items', (one) => `update change_entry set related = null where ${entry(one)}`],
  ['its context', (one) => `update change_entry set context = '{}' where ${entry(one)}`],
  ['its marks', (one) => `update change_entry set marks = null where ${entry(one)}`],
  ['who recorded it', (one) => `update change_entry set recorded_by = 1 where ${entry(one)}`],
  [
    'its actor',
    (one) => `
     update change_entry set actor = (select actor from change_actor where tenant = 'acme' and name = 'jane') where ${entry(one)}`,
  ],
  [
    'its kind',
    // The kind is created in the same statement.
    (one) => `with made as (insert into change_kind (tenant, lookup, entity, type, related_entities)
       values ('acme', '${randomUUID()}', 'order', 'delete', '{customer}') returning kind)
     update change_entry set kind = (select kind from made) where ${entry(one)}`,
  ],
];

test('the check names each entry with any field changed', async () => {
  // Every second one, since adjacent equal verdicts are reported as one. All are of John.
  const changes = changesOfEntries.map((change, place) => [50 + 2 * place, ...change] as const);
  const { isRight, wrong } = await tampered(
    changes.map(([position, , statementOf]) => statementOf(position)).join(';'),
  );
  expect(isRight).toBe(false);
  const whatAt = new Map(changes.map(([position, what]) => [position, what]));
  expect(wrong.map(({ from, to, verdict }) => [whatAt.get(from), to - from, verdict])).toEqual(
    changesOfEntries.map(([what, , verdict = 'CHANGED']) => [what, 0, verdict]),
  );
});

const ofPeople = (position: number) => `tenant = 'people' and at = ${now() + position - 1}`;
const setWho = (position: number, set: string) =>
  `update change_actor set ${set} where tenant = 'people' and actor = (select actor from change_entry where ${ofPeople(position)})`;
const setEntry = (position: number, set: string) => `update change_entry set ${set} where ${ofPeople(position)}`;
/** Another person with a right lookup, so that nothing but the commitment tells. */
const setKnown = (position: number, to: StoredActor) => `
  ${setWho(
    position,
    `name = ${quoted(to.name)}, actor_id = ${quoted(to.actorId)},
    behalf_name = ${quoted(to.onBehalfOfName)}, behalf_id = ${quoted(to.onBehalfOfId)},
    lookup = '${hashOfStoredActor(to).toString('hex')}'`,
  )}`;
const quoted = (text: string | null) => (text === null ? 'null' : `'${text}'`);
const who = (actorId: string | null, onBehalfOfName: string | null = null, onBehalfOfId: string | null = null) => ({
  ...{ name: 'Jane', actorId, onBehalfOfName, onBehalfOfId },
});

test.each<[string, number, string]>([
  ['an id where there was none', 1, setKnown(1, who('u-9'))],
  ['a person on whose behalf, where there was none', 1, setKnown(1, who(null, 'Acme'))],
  ['a correlation where there was none', 1, setEntry(1, `correlation_text = 'req-1'`)],
  ['another id', 2, setKnown(2, who('u-18'))],
  ['no id', 2, setKnown(2, who(null))],
  ['an id that is empty', 2, setKnown(2, who(''))],
  ['the id as a name on whose behalf', 2, setKnown(2, who(null, 'u-17'))],
  ['another correlation', 2, setEntry(2, `correlation = '${otherId}'`)],
  ['no correlation', 2, setEntry(2, `correlation = null`)],
  ['a name for the person on whose behalf', 3, setKnown(3, who('u-17', 'Other', 'c-1'))],
  ['another id of the person on whose behalf', 3, setKnown(3, who('u-17', 'Acme', 'c-2'))],
  ['the name as the id on whose behalf', 4, setKnown(4, who(null, null, 'Acme'))],
  ['the id on whose behalf as the name', 5, setKnown(5, who(null, 'c-1'))],
  ['the id on whose behalf as that of the actor', 5, setKnown(5, who('c-1'))],
  ['a correlation as a UUID', 6, setEntry(6, `correlation = '${uuid}'`)],
])('the check names an entry with %s', async (_what, position, statement) => {
  const { isRight, wrong, findings } = await tampered(statement, 'people');
  expect({ isRight, wrong }).toMatchObject({
    isRight: false,
    wrong: [{ from: position, to: position, verdict: 'CHANGED' }],
  });
  expect(findings.filter((finding) => finding.startsWith('Recorders'))).toEqual([]);
});

test('the check reports a person under the lookup of another, and a correlation that no query finds', async () => {
  expect(await check('people')).toEqual({ isRight: true, wrong: [], findings: [] });
  const other = hashOfStoredActor(who('u-18')).toString('hex');
  const looked = await tampered(setWho(2, `lookup = '${other}'`), 'people');
  expect(looked).toEqual({ isRight: false, wrong: [], findings: [lookedUp('the actor Jane')] });
  for (const set of [`correlation = null, correlation_text = '${uuid}'`, `correlation_text = 'req-1'`]) {
    const hidden = await tampered(setEntry(2, set), 'people');
    expect(hidden).toEqual({ isRight: false, wrong: [], findings: [derivedOf('1')] });
  }
});

test('changing the name of an actor or a kind changes every entry that has it', async () => {
  const renamed = await tampered(`update change_actor set name = 'someone' where tenant = 'acme' and name = 'john'`);
  expect(renamed.wrong.length).toBe(entriesOfTenant / 2);
  const retyped = await tampered(`update change_kind set type = 'create' where tenant = 'acme'`);
  expect(retyped.wrong).toMatchObject([{ from: 1, to: entriesOfTenant, verdict: 'CHANGED' }]);
});

test('the check names an entry that was deleted, moved to another tenant or swapped', async () => {
  expect((await tampered(`delete from change_entry where ${entry(60)}`)).wrong).toMatchObject(gone(60));
  const moved = await tampered(remade(60, { tenant: 'other', sequence: -5 }));
  expect(moved.wrong).toMatchObject(gone(60));
  const swapped = await tampered(
    // A slice: a cluster takes one assignment to a column.
    `update change_position set sequences[10:11] = array[sequences[11], sequences[10]],
       ats[10:11] = array[ats[11], ats[10]] where tenant = 'acme' and first = 1`,
  );
  expect(swapped.wrong).toMatchObject([{ from: 10, to: 11, verdict: 'CHANGED' }]);
});

test('the check reports an entry that was never recorded, with its document', async () => {
  const { isRight, wrong, findings } = await tampered(doubled(70, now() + 500));
  expect(isRight).toBe(false);
  expect(wrong).toEqual([]);
  expect(findings).toEqual([
    expect.stringMatching(/^1 changes are in the history that were never recorded: order o\d at 2026-09-15T/),
  ]);
});

test('the check counts entries with changed columns that the proof does not cover', async () => {
  const statements = [
    `update change_entry set document = '${otherId}' where ${entry(50)}`,
    `update change_entry set path_numbers = path_numbers[2:] where ${entry(51)}`,
    `update change_related set entity_id = 'c1', document = '${otherId}' where ${entry(52)}`,
    `delete from change_related where ${entry(53)}`,
    `update change_entry set erased = '["actor"]' where ${entry(54)}`,
  ];
  const { isRight, wrong, findings } = await tampered(statements.join(';'));
  expect({ isRight, wrong }).toEqual({ isRight: false, wrong: [] });
  expect(findings).toEqual([
    expect.stringMatching(
      /^5 changes have columns for queries that do not follow from what they say: order o\d at 2026-/,
    ),
  ]);
});

const derivedOf = (many: string) =>
  expect.stringMatching(`^${many} changes have columns for queries that do not follow from what they say`);
const lookedUp = (name: string) => expect.stringMatching(`^Recorders look ${name} up by a hash that is not its own`);

test.each<[string, string, string[]]>([
  [
    'the types of related items of a kind',
    `update change_kind set related_entities = '{}' where tenant = 'acme'`,
    [derivedOf('100 or more'), lookedUp('the kind update of order')],
  ],
  [
    'these types with their hash',
    `update change_kind set related_entities = '{}', lookup = '${hashOfKind('order', 'update', []).toString('hex')}'
       where tenant = 'acme'`,
    [derivedOf('100 or more')],
  ],
  [
    'the name of a path',
    `update change_path set name = 'other' where tenant = 'acme' and name = 'n'`,
    [lookedUp('the path other of order')],
  ],
  ['the names of paths, which are gone,', `delete from change_path where tenant = 'acme'`, [derivedOf('100 or more')]],
  [
    'the hashes of a kind, of two actors, of a client and of a person',
    `update change_kind set lookup = '${otherId}' where tenant = 'acme';
     update change_actor a set lookup = b.lookup from change_actor b
       where a.tenant = 'acme' and b.tenant = 'acme' and a.name <> b.name;
     update change_recorder set lookup = '${randomUUID()}' where tenant = 'acme' and way = 'relay';
     update change_recorder set lookup = '${randomUUID()}' where tenant = 'acme' and way = 'service'`,
    ['the kind update of order', 'the actor jane', 'the actor john', 'the relay shop', 'the service kim'].map(lookedUp),
  ],
])('the check reports a change of %s, by which names are found', async (_what, statement, expected) => {
  const { isRight, wrong, findings } = await tampered(statement);
  expect({ isRight, wrong }).toEqual({ isRight: false, wrong: [] });
  expect(findings).toEqual(expected);
});

test.each([
  [`way = 'capture'`, `issuer = 'https://other.example'`],
  [`name = 'other'`, `subject = 'tom'`],
])('the check names entries with a changed recorder: client %s, person %s', async (...[client, person]) => {
  const { wrong } = await tampered(
    `update change_recorder set ${client} where tenant = 'acme' and name = 'shop';
     update change_recorder set ${person} where tenant = 'acme' and subject = 'kim'`,
  );
  expect(wrong).toMatchObject([{ from: 1, to: 2, verdict: 'CHANGED' }]);
});

const places = (first: number) =>
  `The places of the positions from ${first} on do not follow from each other, or do not lead up to what is sealed.`;

test.each([
  ['where a receipt stands', `first = first + 9`, 301, places(310)],
  ['the earliest time', `oldest = oldest - 1`, 1, places(1)],
  ['the latest time', `newest = newest - 1`, 1, places(1)],
  ['a time of recording', `recorded = recorded[2:]`, 1, places(1)],
])('the check reports a change of %s of places', async (_what, set, first, finding) => {
  const { isRight, wrong, findings } = await tampered(
    `update change_position set ${set} where tenant = 'acme' and first = ${first}`,
  );
  expect({ isRight, wrong }).toEqual({ isRight: false, wrong: [] });
  expect(findings[0]).toBe(finding);
});

test.each<[string, string, object[]]>([
  [
    'a seed, a position that leads to another entry, and the receipt of the first sealing',
    `update proof_leaf set seeds = set_byte(seeds, 0, 255 - get_byte(seeds, 0)) where tenant = 'acme' and first = 1;
     update change_position set sequences[5] = sequences[6], ats[5] = ats[6] where tenant = 'acme' and first = 1;
     update change_receipt set body = replace(body, '2026', '2025') where tenant = 'acme'`,
    [1, 5, 301].map((position) => ({ from: position, to: position, verdict: 'CHANGED' })),
  ],
  [
    'all seeds of a block',
    `update proof_leaf set seeds = decode(repeat('00', 8192), 'hex') where tenant = 'acme' and first = 1`,
    [{ from: 1, to: 256, verdict: 'CHANGED' }],
  ],
  [
    'a commitment',
    `update proof_leaf set commitments = overlay(commitments placing sha256('x') from 33) where tenant = 'acme' and first = 1`,
    [
      { from: 1, to: 1 },
      { from: 2, to: 2 },
      { from: 3, to: 256 },
    ],
  ],
  [
    'leaves that are gone',
    `delete from proof_leaf where tenant = 'acme' and first = 1`,
    [{ from: 1, to: 256, verdict: 'CHANGED' }],
  ],
])('the check names a change of the proof itself: %s', async (_what, statement, expected) => {
  const { isRight, wrong } = await tampered(statement);
  expect(isRight).toBe(false);
  expect(wrong).toMatchObject(expected);
});

test('the check reports a changed tile, log description and end of the log', async () => {
  const { isRight, wrong, findings } = await tampered(
    // The last position would be assigned again.
    `update proof_tile set hashes = sha256(hashes) where tenant = 'acme';
     delete from change_position where tenant = 'acme' and first = 301;
     update proof_log set receipt = 9000, vkey = 'other' || vkey where tenant = 'acme'`,
  );
  expect({ isRight, wrong }).toEqual({ isRight: false, wrong: [] });
  expect(findings).toEqual([
    'The hash that the log has of the positions 1 to 256 is not theirs; the positions are right.',
    places(301),
    'The log does not name the receipt with which it begins.',
    'The verifier key in the database is not the one of ANNALS_PROOF_KEY_FILE.',
  ]);
});

test.each<[string, string, string | RegExp]>([
  [
    'a tile above',
    `insert into proof_tile values ('acme', 2, 0, sha256('x'))`,
    'The hash that the log has of its tile 1/0 is not the one of that tile.',
  ],
  [
    'a tile above, which is gone',
    `insert into proof_leaf values ('acme', 65536, '\\x03', sha256('x'), sha256('x'))`,
    'The hash that the log has of its tile 1/0 is not the one of that tile.',
  ],
  [
    'the place of a receipt, which has an entry then',
    `${doubled(70, now() + 500)};
     update change_position set ats = ats || ${now() + 500}::bigint, sequences = sequences || -9::bigint, first = first
       where tenant = 'acme' and first = 1;
     delete from change_position where tenant = 'acme' and first > 1`,
    /^1 changes are in the history that were never recorded/,
  ],
  [
    'a position, so that an entry has two',
    `insert into change_position (tenant, first, ats, sequences, recorded, fingerprints, oldest, newest)
       select tenant, 302, ats[9:9], sequences[9:9], recorded[9:9], fingerprints[9:9], ats[9], ats[9]
         from change_position where tenant = 'acme' and first = 1`,
    /^1 changes are in the history that were never recorded/,
  ],
])('the check reports a change of %s', async (_what, statement, finding) => {
  const { isRight, wrong, findings } = await tampered(statement);
  expect({ isRight, wrong }).toEqual({ isRight: false, wrong: [] });
  expect(findings).toContainEqual(typeof finding === 'string' ? finding : expect.stringMatching(finding));
});

test.each([
  ['are gone', `delete from change_document where tenant = 'acme'`],
  ['are others', `update change_document set words = 'other' where tenant = 'acme'`],
])('the check reports that the words by which documents are found %s', async (_what, statement) => {
  const { isRight, wrong, findings } = await tampered(statement);
  expect({ isRight, wrong }).toEqual({ isRight: false, wrong: [] });
  expect(findings).toHaveLength(9);
  expect(findings).toContain('The search for names of documents does not find order o1 by its last name.');
});

test('the check reports that the database was set back if the key signed more than it has', async () => {
  const behind = `update proof_log set size = 256 where tenant = 'acme'`;
  const { isRight, wrong, findings } = await tampered(
    `${behind}; delete from proof_leaf where tenant = 'acme' and first > 256`,
  );
  expect({ isRight, wrong }).toEqual({ isRight: false, wrong: [] });
  expect(findings).toEqual([
    'The database was set back: the key signed 301 positions of this log, and the database has 256 of them.',
  ]);
  await expect(tampered(behind)).rejects.toThrow(
    'the checkpoint in the database was set back: it has 256 positions, and the key signed 301 of this log',
  );
});

test('the check remarks on a log that began after a restore, though the rest of the history is intact', async () => {
  await createTenant(db, 'restored');
  await record('restored', 5);
  await seal('restored');
  const { origin } = (await readLog(db, 'restored')) ?? { origin: '' };
  const { newest, of } = sealing.signer;
  // The key signed ten positions that a restore removed.
  const root = Buffer.alloc(32, 1);
  const note = signCheckpoint({ origin, size: 16, root }, of(origin));
  expect(newest.advance(origin, newest.newest(origin), { size: 16, root, note })).toBe(true);
  expect(await countSetBack(db, now())).toBe(0);
  await record('restored', 3, 1_000);
  await seal('restored');
  const log = (await readLog(db, 'restored'))?.origin ?? '';
  const { isRight, findings } = await checkHistory(
    'restored',
    { db, readBundle, findMisfiled, key: sealing.signer.keyOf(log), newest: newest.newest(log)?.note },
    () => {},
  );
  expect(isRight).toBe(true);
  expect(findings.filter(({ isRemark }) => isRemark)).toEqual([
    {
      ...{ isWrong: false, isRemark: true },
      text: `The database, or what is beside the key, was set back before 2026-09-15T00:00:00.000Z (restore@10): of the 16 positions that the key had signed of ${origin}, it surely had 6.`,
    },
  ]);
  expect(await countSetBack(db, now() + 86_400_000)).toBe(1);
  expect(await countSetBack(db, now() + 8 * 86_400_000)).toBe(0);
});

test('the check reports a checkpoint that the key did not sign', async () => {
  const { isRight, findings } = await tampered(
    `update proof_log set checkpoint = replace(checkpoint, E'\\n301\\n', E'\\n300\\n') where tenant = 'acme'`,
  );
  expect(isRight).toBe(false);
  expect(findings[0]).toBe('The checkpoint of the file has a signature that is not for this text.');
});

test('a forged receipt is not sealed, so it excuses nothing', async () => {
  for (const position of [60, 4000]) {
    const { isRight, wrong, findings } = await tampered(
      `delete from change_entry where ${entry(60)};
       insert into change_receipt values ('acme', ${position}, '{"what":"erasure","positions":[[60,60]]}')`,
    );
    expect(isRight).toBe(false);
    expect(wrong).toMatchObject(gone(60));
    expect(findings).toContain(`A receipt says that it is at position ${position}, and the log has none there.`);
  }
});

test('a bundle shows and proves the requested part, and hides the rest', async () => {
  const log = await readLog(db, 'acme');
  const keys = [log?.vkey ?? ''];
  const taken = async (options: Parameters<ReadBundle>[1]) => {
    const lines: BundleLine[] = [];
    for await (const line of readBundle('acme', options)) lines.push(line);
    const verdicts: Verdict[] = [];
    const read = async function* () {
      yield* lines;
    };
    const result = await verifyBundle(read, { keys, accept: new Set() }, (verdict) => void verdicts.push(verdict));
    return { lines, verdicts, isRight: result.isRight };
  };
  const part = await taken({ from: 10, to: 12 });
  expect(part).toMatchObject({ isRight: true });
  expect(part.verdicts).toEqual([
    { from: 1, to: 9, verdict: 'not shown' },
    { from: 10, to: 12, verdict: 'verified' },
    { from: 13, to: 301, verdict: 'not shown' },
  ]);
  const selection = await taken({ q: 'actor:john entity:order entityId:o1' });
  expect(selection.isRight).toBe(true);
  const shown = selection.lines.filter((line) => line.kind === 'entry');
  expect(shown).toHaveLength(17);
  for (const { fields } of shown) expect(fields).toEqual(expect.arrayContaining(['john', 'o1']));
  const text = JSON.stringify(selection.lines);
  expect(text).not.toContain('192.0.2.1');
  expect(text).not.toContain('jane');
  expect(JSON.stringify((await taken({ withContext: true })).lines)).toContain('192.0.2.1');
  await expect(taken({ from: 302 })).rejects.toThrow('the checkpoint has 301 positions');
  await expect(taken({ q: 'what:' })).rejects.toThrow();
});

test('the check reports a second first sealing: the log was removed', async () => {
  await sql`delete from proof_log where tenant = 'other'`.execute(db);
  await seal('other');
  const { isRight, wrong, findings } = await check('other');
  expect({ isRight, wrong }).toEqual({ isRight: false, wrong: [] });
  expect(findings).toEqual([
    'The receipt first-sealing@7 says that the history was sealed for the first time, once more.',
  ]);
});
