import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { shareFigures } from '../../../src/core/fairness/semaphore.ts';
import { memberOf } from '../../../src/core/json/members.ts';
import { parseJson } from '../../../src/core/json/parse.ts';
import { compactText } from '../../../src/core/json/text.ts';
import { maxSmallBytes } from '../../../src/history/documents/document-at.ts';
import { maxLargeDocuments } from '../../../src/history/history-reads.ts';
import { type Change, type ChangeType, changeOfDocuments } from '../../../src/recording/change.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { checkLaw } from '../../support/oracle/law.ts';
import { entriesOf, isSame, type Written, writings } from '../../support/oracle/written-documents.ts';
import { changeOf } from '../../support/server/history.ts';
import { eventually } from '../../support/server/patience.ts';
import { startTestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);
const second = 1_000;

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const token = await server.token(tenant, { scope: 'changelog.changelog_read' });

async function record(...changes: Change[]): Promise<void> {
  const outcomes = await createRecorder(server.context.db, tenant, () => now)(changes);
  expect(outcomes).toEqual(changes.map(() => 'recorded'));
}

async function ask(
  parameters: Record<string, string>,
): Promise<{ status: number; text: string; body: AnsweredDocument }> {
  const target = `/changelog/${tenant}/documents?${new URLSearchParams(parameters)}`;
  const response = await server.call(target, { token });
  const text = await response.text();
  return { status: response.status, text, body: JSON.parse(text) as AnsweredDocument };
}

interface AnsweredDocument {
  at: string;
  exists: boolean;
  complete: boolean;
  changes: number;
  lastChange?: { at: string; type: string; actor: string };
}

/** The document as in the response, with every digit. */
function documentIn(text: string): string | undefined {
  const document = memberOf(parseJson(text), 'document');
  return document === undefined ? undefined : compactText(document);
}

function documentChange(type: ChangeType, at: number, before: string | undefined, after: string | undefined): Change {
  const change = changeOfDocuments({ type, entity: 'thing', entityId: 'x', at, actor: 'Jane Doe', before, after });
  if (change === 'unchanged') throw new Error('nothing changed');
  return change;
}

test('the document at every moment and after every change is what was written, wherever it is marked complete', async () => {
  const sides = fc.constantFrom<Written['sides']>('both', 'both', 'both', 'after', 'before', 'none');
  const anyPauses = fc.array(fc.constantFrom(0, 1, second), { minLength: 8, maxLength: 8 });
  const whole = writings(fc.constantFrom<Written['sides']>('both', 'after'), fc.constant(false));
  const scenario = fc.oneof(
    fc.record({ written: whole, dropped: fc.constant(0), pauses: anyPauses }),
    fc.record({ written: writings(sides, fc.boolean()), dropped: fc.constantFrom(0, 0, 1, 2), pauses: anyPauses }),
  );
  await checkLaw(scenario, { runs: 8 }, async ({ written, dropped, pauses }) => {
    // A name of its own, so that a test that is repeated meets no entries of the first attempt.
    const entityId = `law ${randomBytes(8).toString('hex')}`;
    let at = now - 100 * second;
    const entries = entriesOf(written).flatMap(({ entry, document }, index) => {
      at += pauses[index] ?? 0;
      return entry === undefined || index < dropped ? [] : [{ entry, document, at }];
    });
    const isWhole =
      dropped === 0 && written.every((one) => !one.isOld && (one.sides === 'both' || one.sides === 'after'));
    await record(
      ...entries.map(({ entry, at: moment }) =>
        changeOf({
          at: moment,
          entity: 'thing',
          entityId,
          type: entry.type,
          paths: entry.paths,
          ...(entry.marks === null ? {} : { marks: entry.marks }),
        }),
      ),
    );
    const old = entries.flatMap(({ entry }, index) => (entry.isMarked ? [] : [index]));
    await server.database.pool.query(
      `update change_entry e set recorded_by = 0
         from (select at, sequence, row_number() over (order by at, sequence) - 1 as place from change_entry
                 where tenant = $1 and entity_id = $2) as one
         where e.tenant = $1 and e.at = one.at and e.sequence = one.sequence and one.place = any ($3)`,
      [tenant, entityId, old],
    );
    for (const [index, { entry, document, at: moment }] of entries.entries()) {
      const isLastOfMoment = entries[index + 1]?.at !== moment;
      const when = { changes: String(index + 1) };
      const selectors = isLastOfMoment ? [when, { at: new Date(moment).toISOString() }] : [when];
      for (const parameters of selectors) {
        const { status, text, body } = await ask({ entity: 'thing', entityId, ...parameters });
        expect({ status, ...body, document: undefined, name: undefined }).toEqual({
          status: 200,
          entity: 'thing',
          entityId,
          at: new Date(moment).toISOString(),
          exists: body.complete ? document !== undefined : body.exists,
          complete: isWhole || body.complete,
          changes: index + 1,
          lastChange: { at: new Date(moment).toISOString(), type: entry.type, actor: 'Jane Doe' },
        });
        if (!body.complete) continue;
        expect(isSame(documentIn(text), document), `${documentIn(text)} for ${document}`).toBe(true);
      }
    }
  });
});

test('before its creation and after its deletion a document does not exist, and between it has every digit', async () => {
  const price = '{"price":1.10,"n":9007199254740993}';
  await record(
    { ...documentChange('create', now - 3 * second, undefined, price), entityId: 'p', name: 'Desk lamp' },
    { ...documentChange('delete', now - second, price, undefined), entityId: 'p' },
    { ...documentChange('create', now + second, undefined, '{"later":true}'), entityId: 'p' },
  );
  const of = { entity: 'thing', entityId: 'p' };
  const time = (moment: number) => new Date(moment).toISOString();
  const common = { ...of, complete: false, exists: false };
  expect(await ask({ ...of, at: time(now - 3 * second - 1) })).toMatchObject({
    status: 200,
    body: { ...common, at: time(now - 3 * second - 1), changes: 0 },
  });
  expect((await ask({ ...of, at: '2026-09-15T12:11:09.345999+02:00' })).text).toBe(
    `{"entity":"thing","entityId":"p","at":"${time(now - 3 * second)}","exists":true,"complete":true,"name":"Desk lamp",` +
      `"document":${price},"changes":1,"lastChange":{"at":"${time(now - 3 * second)}","type":"create","actor":"Jane Doe"}}`,
  );
  // The default moment is now.
  const { text } = await ask(of);
  expect(JSON.parse(text)).toEqual({
    ...of,
    at: time(now),
    exists: false,
    complete: true,
    name: 'Desk lamp',
    changes: 2,
    lastChange: { at: time(now - second), type: 'delete', actor: 'Jane Doe' },
  });
});

test('a large document and one with many entries are returned as written', async () => {
  const filler = Array.from({ length: 4_000 }, (_none, index) => `"${index}":"😀${'é'.repeat(150)}"`);
  const large = `{${filler.join(',')}}`;
  const wide = { entity: 'thing', entityId: 'large' };
  await record(
    { ...documentChange('create', now - 9 * second, undefined, large), entityId: 'large' },
    { ...documentChange('update', now - 8 * second, '{"0":"x"}', '{"0":1.50}'), entityId: 'large', marks: '{}' },
  );
  const first = await ask({ ...wide, changes: '1' });
  expect(isSame(documentIn(first.text), large)).toBe(true);
  expect(first.body).toMatchObject({ complete: true });
  // The update's before value does not match the document.
  const next = await ask({ ...wide, changes: '2' });
  expect(next.body).toMatchObject({ complete: false, exists: true });
  expect(next.text).toContain('"document":{"0":1.50,');

  // Exceeds one read.
  const count = 5_001;
  const update = documentChange('update', now - 7 * second, '{"n":0}', '{"n":1}');
  const many = Array.from({ length: count }, (_none, index) => ({
    ...update,
    paths: `{"n":{"before":${index},"after":${index + 1}}}`,
    entityId: 'many',
    identity: randomBytes(16),
  }));
  await record({ ...documentChange('create', now - 8 * second, undefined, '{"n":0}'), entityId: 'many' }, ...many);
  const { text, body } = await ask({ entity: 'thing', entityId: 'many', changes: String(count + 1) });
  expect({ document: documentIn(text), complete: body.complete }).toEqual({
    document: `{"n":${count}}`,
    complete: true,
  });
});

test(`a process has ${maxLargeDocuments} large documents at once, and a tenant half of them`, async () => {
  const { historyReads, db } = server.context;
  const of = { entity: 'thing', entityId: 'long', when: { at: now } };
  const written = (text: string) => documentChange('create', now - 9 * second, undefined, JSON.stringify({ text }));
  const around = written('').paths.length;
  const longest = { ...written('x'.repeat(maxSmallBytes - around)), entityId: 'longest without a place' };
  expect(longest.paths).toHaveLength(maxSmallBytes);
  const change = written('x'.repeat(maxSmallBytes - around + 1));
  const tenants = [tenant, 'bcme', 'ccme', 'dcme'] as const;
  for (const owner of tenants) {
    await server.createTenant(owner);
    await createRecorder(db, owner, () => now)([{ ...change, entityId: 'long' }]);
  }
  await record(longest);
  const open = (owner: string) => historyReads.document(owner, of);
  const waiting = () => shareFigures().find(({ name }) => name === 'large documents')?.waiting;
  const first = await open(tenant);
  const others = [await open(tenant), await open('bcme')];
  const third = open(tenant);
  await eventually(waiting).toBe(1);
  others.push(await open('ccme'));
  // All slots are taken. A document one byte smaller needs none.
  others.push(await historyReads.document(tenant, { ...of, entityId: longest.entityId }));
  const fifth = open('dcme');
  await eventually(waiting).toBe(2);
  first.release();
  others.push(await fifth);
  expect(waiting()).toBe(1);
  for (const { release } of others) release();
  (await third).release();
});

test('a document without an anchor takes unknown values from its later entries', async () => {
  await record(
    { ...documentChange('update', now - 3 * second, '{"a":1,"b":2}', '{"a":5,"b":2}'), entityId: 'half' },
    { ...documentChange('update', now - 2 * second, '{"a":5,"b":2}', '{"a":5,"b":3}'), entityId: 'half' },
  );
  const { text, body } = await ask({ entity: 'thing', entityId: 'half', changes: '1' });
  expect({ document: documentIn(text), complete: body.complete }).toEqual({
    document: '{"a":5,"b":2}',
    complete: false,
  });
});

test('entries dropped by retention are gone: 404 where none is left', async () => {
  const of = { entity: 'thing', entityId: 'old' };
  await record({ ...documentChange('create', now - 40 * 86_400 * second, undefined, '{"a":1}'), entityId: 'old' });
  expect(await ask(of)).toMatchObject({ status: 200, body: { complete: true } });
  await server.database.pool.query('insert into change_retention (tenant, horizon) values ($1, $2)', [
    tenant,
    Math.floor(now / 86_400_000 - 30) * 86_400_000,
  ]);
  const missing = { status: 404, type: 'resource_not_found', message: 'There is no change of this document.' };
  expect(await ask(of)).toMatchObject({ status: 404, body: missing });
  expect(await ask({ entity: 'nobody', entityId: 'p' })).toMatchObject({ status: 404, body: missing });
  await server.database.pool.query('delete from change_retention');
});

test('a malformed moment or number of changes is 400; so are both, and a missing entityId', async () => {
  const of = { entity: 'thing', entityId: 'p' };
  const violation = (field: string, message: string) => ({
    status: 400,
    body: { status: 400, type: 'validation_violation', message, details: [{ field, message }] },
  });
  expect(await ask({ ...of, at: '2026-02-29T00:00:00Z' })).toMatchObject(
    violation('at', 'at must be a date that exists'),
  );
  expect((await ask({ ...of, at: '' })).body).toMatchObject({ details: [{ field: 'at' }] });
  expect(await ask({ ...of, changes: '0' })).toMatchObject(violation('changes', 'changes must be >= 1'));
  expect(await ask({ ...of, changes: '2147483648' })).toMatchObject(
    violation('changes', 'changes must be <= 2147483647'),
  );
  expect(await ask({ ...of, changes: '2147483647' })).toMatchObject({
    status: 404,
    body: { message: 'There are only 3 changes of this document.' },
  });
  expect(await ask({ ...of, changes: '1', at: '2026-01-01T00:00:00Z' })).toMatchObject(
    violation('changes', 'changes and at cannot be given together'),
  );
  expect(await ask({ entity: 'thing' })).toMatchObject(violation('entityId', 'entityId is required'));
});
