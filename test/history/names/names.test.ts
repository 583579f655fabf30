import { expect, test } from 'vitest';
import { compareCodePoints } from '../../../src/history/search/names/search-names.ts';
import { createRecorder } from '../../../src/recording/record-change.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { changeOf } from '../../support/server/history.ts';
import { startTestServer } from '../../support/server/server.ts';

const tenant = 'acme';
const day = 86_400_000;
const now = Date.UTC(2026, 8, 15, 10, 11, 12, 345);

const server = closeAfterAll(await startTestServer({ clock: { now: () => now } }));
const token = await server.token(tenant, { scope: 'changelog.changelog_read' });

async function ask(parameters: string): Promise<{ status: number; body: unknown }> {
  const response = await server.call(`/changelog/${tenant}/names?${parameters}`, { token });
  return { status: response.status, body: await response.json() };
}

async function names(field: string, prefix = '', size = 100): Promise<string[]> {
  const { body } = await ask(`field=${field}&prefix=${encodeURIComponent(prefix)}&size=${size}`);
  return (body as { values: string[] }).values;
}

test('names begin with the prefix in any case, in code point order', async () => {
  const actors = [
    '\u{1F600}',
    '\uE000',
    'Jane Doe',
    'jane.smith',
    'JANET',
    'Straße',
    'STRASSE',
    'Σίσυφος',
    'a.b',
    'aXb',
    'ẞ',
  ];
  await createRecorder(
    server.context.db,
    tenant,
    () => now,
  )([
    ...actors.map((actor) => changeOf({ at: now, actor })),
    changeOf({ at: now, actor: 'Jane Doe', entity: 'site', related: [{ entity: 'Customer', entityId: '1' }] }),
    changeOf({ at: now, actor: 'later', entity: 'order', related: [{ entity: 'company', entityId: '1' }] }),
  ]);
  expect(await names('actor', 'jane')).toEqual(['JANET', 'Jane Doe', 'jane.smith']);
  // Simple folding: a final sigma is a sigma, a capital sharp s is a sharp s, and no letter becomes two.
  expect(await names('actor', 'ςΊΣ')).toEqual(['Σίσυφος']);
  expect(await names('actor', 'straß')).toEqual(['Straße']);
  expect(await names('actor', 'ß')).toEqual(['ẞ']);
  expect(await names('actor', 'a.')).toEqual(['a.b']);
  expect((await names('actor')).slice(-2)).toEqual(['\uE000', '\u{1F600}']);
  expect(await names('actor', '', 2)).toEqual(['JANET', 'Jane Doe']);
  expect(await names('entity')).toEqual(['order', 'site']);
  expect(await names('related.entity', 'c')).toEqual(['Customer', 'company']);
});

test('names that only dropped entries have are not listed', async () => {
  const old = Array.from({ length: 700 }, (_none, index) => changeOf({ at: now - 50 * day, actor: `old ${index}` }));
  await createRecorder(
    server.context.db,
    tenant,
    () => now,
  )([
    ...old,
    changeOf({ at: now - 50 * day, actor: 'zoe', entity: 'gone', related: [{ entity: 'gone too', entityId: '1' }] }),
    changeOf({ at: now, actor: 'old 99' }),
    changeOf({ at: now, actor: 'old and kept' }),
  ]);
  expect(await names('actor', 'old')).toHaveLength(100);
  expect(await names('entity', 'gone')).toEqual(['gone']);
  await server.database.pool.query('insert into change_retention (tenant, horizon) values ($1, $2)', [
    tenant,
    Math.floor(now / day - 30) * day,
  ]);
  expect(await names('actor', 'old')).toEqual(['old 99', 'old and kept']);
  expect(await names('entity', 'gone')).toEqual([]);
  expect(await names('related.entity', 'gone')).toEqual([]);
});

test('an invalid parameter is 400 with a detail', async () => {
  const violation = (field: string, message: string) => ({
    status: 400,
    body: { status: 400, type: 'validation_violation', message, details: [{ field, message }] },
  });
  const wrongField = 'field must be one of entity, actor, related.entity, path, document';
  for (const field of ['type', 'entityId', ''])
    expect(await ask(`field=${field}`)).toEqual(violation('field', wrongField));
  for (const size of ['0', '101']) {
    expect(await ask(`field=actor&size=${size}`)).toEqual(violation('size', 'size must be between 1 and 100'));
  }
  expect(await ask(`field=actor&prefix=${'x'.repeat(1_000)}`)).toMatchObject({ status: 200, body: { values: [] } });
  expect(await ask(`field=actor&prefix=${'x'.repeat(1_001)}`)).toEqual(
    violation('prefix', 'prefix must have at most 1000 characters'),
  );
});

test('the order of code points is that of UTF-8', () => {
  const random = new Random();
  const points = [0x41, 0x7f, 0xe9, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff];
  const text = () =>
    String.fromCodePoint(...Array.from({ length: random.below(4) }, () => points[random.below(8)] ?? 0));
  for (let pair = 0; pair < 2_000; pair++) {
    const [left, right] = [text(), text()];
    expect(Math.sign(compareCodePoints(left, right))).toBe(Buffer.compare(Buffer.from(left), Buffer.from(right)));
  }
});
