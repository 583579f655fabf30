import { describe, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { historyOf, schemaClient } from '../../support/server/schema-client.ts';
import { startTestServer } from '../../support/server/server.ts';

const server = closeAfterAll(await startTestServer());
const token = await server.token('acme', { name: 'Jane Doe' });
const client = schemaClient(server, 'acme', token);
await client.type('THING');

const at = (id: string) => `/THING/instances/${encodeURIComponent(id)}`;

describe('optimistic locking', () => {
  test('a write with an old metadata.version is 409', async () => {
    await client.put(at('locked'), { n: 1 });
    expect((await client.put(at('locked'), { n: 2, metadata: { version: 1 } })).status).toBe(204);
    const old = await client.put(at('locked'), { n: 3, metadata: { version: 1 } });
    expect(old).toMatchObject({ status: 409, body: { type: 'conflict_resource' } });
    expect((await client.put(at('locked'), { n: 3, metadata: { version: 99 } })).status).toBe(409);
    expect((await client.put(at('locked'), { n: 3 })).status).toBe(204);
    const replace = (version: number) => [{ op: 'replace', path: '/metadata/version', value: version }];
    expect((await client.patch(at('locked'), replace(2))).status).toBe(409);
    expect((await client.patch(at('locked'), replace(3))).status).toBe(204);
    expect((await client.get(at('locked'))).body).toMatchObject({ n: 3, metadata: { version: 4 } });
  });

  test('a version of a deleted instance is an old one', async () => {
    await client.put(at('deleted'), { n: 1 });
    await client.remove(at('deleted'));
    expect((await client.put(at('deleted'), { n: 2, metadata: { version: 1 } })).status).toBe(409);
  });

  test('of concurrent PUTs with the same version one wins, and the change history shows exactly the winners', async () => {
    await client.put(at('raced'), { winner: 'nobody' });
    const winners: string[] = [];
    for (let version = 1; version <= 6; version += 1) {
      const writes = await Promise.all(
        Array.from({ length: 8 }, async (_, writer) => {
          const winner = `${version}-${writer}`;
          return { winner, ...(await client.put(at('raced'), { winner, metadata: { version } })) };
        }),
      );
      expect(writes.map(({ status }) => status).sort()).toEqual([204, ...Array(7).fill(409)]);
      winners.push(...writes.filter(({ status }) => status === 204).map(({ winner }) => winner));
    }
    const { items } = await historyOf(server, { tenant: 'acme', token, q: 'entity:THING entityId:raced type:update' });
    expect(items.map(({ paths }) => paths.winner?.after).reverse()).toEqual(winners);
    expect(items.map(({ paths }) => paths['metadata.version']?.after).reverse()).toEqual(
      winners.map((_winner, index) => index + 2),
    );
  });

  test('of concurrent PATCHes without a version none is lost', async () => {
    await client.put(at('counted'), { list: [] });
    const patches = await Promise.all(
      Array.from({ length: 12 }, (_, value) => client.patch(at('counted'), [{ op: 'add', path: '/list/-', value }])),
    );
    expect(patches.map(({ status }) => status)).toEqual(Array(12).fill(204));
    const { list } = (await client.get(at('counted'))).body as { list: number[] };
    expect(list.sort((left, right) => left - right)).toEqual(Array.from({ length: 12 }, (_, value) => value));
  });

  test('of concurrent POSTs with the same id one wins, of concurrent PUTs of a new one each counts', async () => {
    const posts = await Promise.all(Array.from({ length: 8 }, () => client.post('/THING/instances', { id: 'once' })));
    expect(posts.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)]);
    const puts = await Promise.all(Array.from({ length: 8 }, (_, n) => client.put(at('many'), { n })));
    expect(puts.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(204)]);
    expect((await client.get(at('many'))).body).toMatchObject({ metadata: { version: 8 } });
  });
});

describe('recording', () => {
  test('each write is a change entry: deletes and re-creations included', async () => {
    await client.post('/THING/instances', '{"id":"told","name":{"de":"Ding","en":"Thing"},"n":1.10}');
    await client.put(at('told'), '{"name":{"en":"Thing"},"n":9007199254740993}');
    await client.patch(at('told'), [{ op: 'remove', path: '/n' }]);
    await client.remove(at('told'));
    await client.put(at('told'), '{"name":"Again"}');
    const { items } = await historyOf(server, { tenant: 'acme', token, q: 'entity:THING entityId:told' });
    expect(items.map(({ type, entity, name, actor }) => [type, entity, name, actor])).toEqual([
      ['create', 'THING', 'Again', 'Jane Doe'],
      ['delete', 'THING', 'Thing', 'Jane Doe'],
      ['update', 'THING', 'Thing', 'Jane Doe'],
      ['update', 'THING', 'Thing', 'Jane Doe'],
      ['create', 'THING', 'Thing', 'Jane Doe'],
    ]);
    expect(items[2]?.paths.n).toEqual({ before: Number('9007199254740993') });
    expect(items[3]?.paths['name.de']).toEqual({ before: 'Ding' });
    expect(items[4]?.paths['metadata.version']).toEqual({ after: 1 });
    const raw = await server.call('/changelog/acme/changelogs?q=entity:THING%20entityId:told', { token });
    expect(await raw.text()).toContain('{"before":1.10,"after":9007199254740993}');
  });

  test('a write that is refused leaves no entry', async () => {
    await client.put(at('refused'), {});
    await client.put(at('refused'), { metadata: { version: 7 } });
    await client.post('/THING/instances', { id: 'refused' });
    await client.patch(at('refused'), [{ op: 'test', path: '/n', value: 1 }]);
    expect((await historyOf(server, { tenant: 'acme', token, q: 'entity:THING entityId:refused' })).total).toBe(1);
  });

  test('where the entry cannot be recorded nothing is written', async () => {
    await server.database.pool.query('alter table change_entry rename to change_entry_away');
    try {
      expect((await client.put(at('half'), {})).status).toBe(500);
    } finally {
      await server.database.pool.query('alter table change_entry_away rename to change_entry');
    }
    expect((await client.get(at('half'))).status).toBe(404);
  });

  test('entries of a type with a schema have the version of the type', async () => {
    await client.type('VERSIONED', { type: 'object' });
    await client.post('/VERSIONED/instances', { id: 'a' });
    await client.put('/VERSIONED', { name: { en: 'V' }, jsonSchema: { type: 'object' } });
    await client.put('/VERSIONED/instances/a', {});
    const { items } = await historyOf(server, { tenant: 'acme', token, q: 'entity:VERSIONED' });
    expect(items.map(({ schemaVersion }) => schemaVersion)).toEqual(['2', '1']);
  });
});
