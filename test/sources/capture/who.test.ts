import { expect, test } from 'vitest';
import { createSealer } from '../../../src/core/sealing.ts';
import { createBatchRecorder } from '../../../src/recording/batches/record-batch.ts';
import { readMapping } from '../../../src/recording/mapping/read-mapping.ts';
import { retryRejected } from '../../../src/recording/mapping/retry-rejected.ts';
import { countOfEntries } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { attributionsOf, byRows, definition, groupsOf, tables } from '../who.ts';
import { type CaptureSetup, startCapture, tenant, useCaptureDatabases } from './captured.ts';

const databases = useCaptureDatabases();

async function captureFlags() {
  const source = databases.openSource();
  await source.pool.query(definition);
  const setup: CaptureSetup = { source, history: databases.openHistory(), tables };
  const running = startCapture(setup);
  await running.running;
  const apply = async (statements: string) => {
    await source.pool.query(`begin; ${statements}; commit`);
  };
  const byFlag = async () => (await attributionsOf(setup.history)).map(({ entityId, who }) => `${entityId} ${who}`);
  return { ...setup, running, apply, byFlag };
}

const say = (prefix: string, content: string | object) =>
  `select pg_logical_emit_message(true, 'annals.${prefix}', $m$${typeof content === 'string' ? content : JSON.stringify(content)}$m$)`;
const sayWho = (content: string | object) => say('who', content);
const insert = (id: number) => `insert into flags values (${id}, true)`;
const jane = { actor: 'Jane', actorId: 'u-1', onBehalfOf: { name: 'Acme', id: 'c-1' } };

test('a message annals.who counts for the changes after it, and annals.actor for those before the first', async () => {
  const { apply, byFlag } = await captureFlags();
  await apply([insert(1), sayWho(jane), insert(2), insert(3), sayWho({ actorId: 'u-2' }), insert(4)].join(';'));
  await apply(
    [insert(5), insert(6), sayWho(jane), insert(7), say('actor', { actor: 'Zoe', actorId: 'u-9' })].join(';'),
  );
  // A delete may be the first half of a move, and is recorded once the next change shows that it is not.
  await apply(['delete from flags where id = 1', sayWho(jane), 'delete from flags where id = 2'].join(';'));
  const janes = 'Jane (u-1) for Acme (c-1)';
  await eventually(byFlag).toEqual([
    ...['1 unknown', `2 ${janes}`, `3 ${janes}`, '4 unknown (u-2)'],
    ...['5 Zoe (u-9)', '6 Zoe (u-9)', `7 ${janes}`],
    ...['1 unknown', `2 ${janes}`],
  ]);
});

test('a message of a savepoint that is rolled back does not count, nor one of another transaction', async () => {
  const { source, apply, byFlag } = await captureFlags();
  await apply(
    [
      sayWho({ actor: 'Ada' }),
      insert(1),
      'savepoint one',
      sayWho({ actor: 'Ben' }),
      insert(2),
      'rollback to one',
      insert(3),
    ].join(';'),
  );
  const [first, second] = await Promise.all([source.pool.connect(), source.pool.connect()]);
  for (const statement of ['begin', sayWho({ actor: 'Cleo' }), insert(4)]) {
    await first.query(statement);
    await second.query(statement.replace('Cleo', 'Dora').replace('(4', '(6'));
  }
  await second.query(`${insert(7)}; commit`);
  await first.query(`${insert(5)}; commit`);
  first.release();
  second.release();
  await eventually(byFlag).toEqual(['1 Ada', '3 Ada', '6 Dora', '7 Dora', '4 Cleo', '5 Cleo']);
});

test('a name and an id come from one source: message, then row, then a new row of another table', async () => {
  const { apply, byFlag } = await captureFlags();
  const expected = byRows.flatMap(([, names]) => names);
  for (const [statements] of byRows) await apply(statements);
  await apply(`${sayWho({ actorId: 'u-1' })}; insert into flags values (21, true, 'Dora', 'u-4')`);
  await apply(`${sayWho({ context: { ip: '::1' } })}; insert into flags values (22, true, 'Dora', 'u-4')`);
  await eventually(async () => (await byFlag()).map((text) => text.slice(3))).toEqual([
    ...expected,
    'unknown (u-1)',
    'Dora (u-4)',
  ]);
});

test('a message that cannot be read counts for nothing, ends the one before, and gives one warning without content', async () => {
  const { apply, byFlag, history, running } = await captureFlags();
  const unreadable = [
    ...[
      '',
      '{',
      '[]',
      'canary',
      '{"actor": "canary"} canary',
      '{"actor": 17}',
      '{"actor": ""}',
      '{"actor": "\\ud800"}',
    ],
    ...['{"actor": "\\u0000canary"}', '{"canary": 1}', '{"onBehalfOf": "canary"}', '{"onBehalfOf": {"canary": 1}}'],
    JSON.stringify({ actorId: 'x'.repeat(1001) }),
    JSON.stringify({ correlationId: 'x'.repeat(201) }),
    JSON.stringify({ context: { canary: 'x'.repeat(5000) } }),
    `{"actor": "canary"${' '.repeat(70_000)}}`,
    `{"context": ${'['.repeat(5000)}${']'.repeat(5000)}}`,
  ];
  for (const [place, text] of unreadable.entries()) {
    await apply(
      [
        ...[say('actor', { actor: 'Zoe', context: { ip: '::1' } }), sayWho({ actor: 'Ada' }), insert(100 + place)],
        ...[sayWho(text), insert(200 + place), sayWho({ actor: 'Ben' }), insert(300 + place)],
      ].join(';'),
    );
  }
  await apply([say('actor', { actor: 'Zoe' }), ...unreadable.map((text) => say('actor', text)), insert(1)].join(';'));
  await apply([...unreadable.map((text) => say('actor', text)), insert(2)].join(';'));
  await apply(
    [sayWho('{"actor": null, "onBehalfOf": {"name": "A", "id": null}, "context": null}'), insert(3)].join(';'),
  );
  await eventually(byFlag).toEqual([
    ...unreadable.flatMap((_text, place) => [`${100 + place} Ada`, `${200 + place} unknown`, `${300 + place} Ben`]),
    ...['1 Zoe', '2 unknown', '3 unknown for A'],
  ]);
  expect((await attributionsOf(history)).map(({ context }) => context)).not.toContain('{"ip":"::1"}');
  const warnings = running.messages.filter((message) => message.includes('cannot be read'));
  const [ofWho, ofActor] = [
    'a message annals.who of the source cannot be read: the changes after it are recorded without it',
    'a message annals.actor of the source cannot be read: it is ignored',
  ];
  expect(warnings).toEqual([...unreadable.map(() => ofWho), ofActor, ofActor]);
  expect(running.messages.join()).not.toContain('canary');
});

test('the changes of a transaction share a correlation id, one alone has none, and what a change says itself comes first', async () => {
  const { apply, history } = await captureFlags();
  await apply(`${insert(1)}; ${insert(2)}`);
  await apply(insert(3));
  await apply(`${insert(4)}; update flags set id = 5 where id = 4`);
  await apply(`${insert(6)}; ${sayWho({ correlationId: 'request 7' })}; ${insert(7)}`);
  await apply(`truncate flags`);
  await eventually(() => countOfEntries(history)).toBe(14);
  expect(groupsOf(await attributionsOf(history))).toEqual([
    ...['a', 'a', '-', 'b', 'b', 'b', 'c', 'request 7'],
    ...['d', 'd', 'd', 'd', 'd', 'd'],
  ]);
});

test('a transaction recorded in parts, by two processes, is as one of one reading', async () => {
  const { apply, history, running, ...setup } = await captureFlags();
  // Its second part fails, whatever capture tries.
  await history.pool.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not yet'; end $$;
     create trigger refuse before insert on change_entry for each row when (new.entity_id = '2050') execute function refuse()`,
  );
  const fill = (from: number, to: number) => `insert into flags select n, true from generate_series(${from}, ${to}) n`;
  await apply(
    [
      fill(1, 500),
      sayWho({ ...jane, context: { ip: '::1' } }),
      fill(501, 2049),
      fill(2050, 2100),
      say('actor', { actor: 'Zoe' }),
    ].join(';'),
  );
  await eventually(() => countOfEntries(history)).toBe(2000);
  await running.stop();
  await history.pool.query('drop trigger refuse on change_entry; drop function refuse');
  startCapture({ ...setup, history });
  await eventually(() => countOfEntries(history)).toBe(2100);
  const entries = await attributionsOf(history);
  expect(new Set(groupsOf(entries))).toEqual(new Set(['a']));
  const expected = (id: number) => (id <= 500 ? 'Zoe' : 'Jane (u-1) for Acme (c-1)');
  expect(entries.map((entry) => entry.who)).toEqual(entries.map(({ entityId }) => expected(Number(entityId))));
  expect(entries.filter(({ context }) => context === '{"ip":"::1"}')).toHaveLength(1600);
});

test('a rejected row is retried with what its transaction said', async () => {
  const { source, history, ...setup } = await captureFlags();
  await setup.running.stop();
  await source.pool.query(
    'create table tags (id text primary key, code text, ip text); alter table tags replica identity full',
  );
  const mapping = (id: string) => ({
    version: 1,
    tenant: { value: tenant },
    tables: { ...tables, 'public.tags': { entity: 'tag', id: [id], mask: ['ip'] } },
  });
  await startCapture({ source, history, mapping: mapping('id'), choice: { alter: true } }).running;
  await setup.apply(
    [insert(1), sayWho({ ...jane, context: { ip: '::1', via: 'ui' } }), `insert into tags values ('', 'a')`].join(';'),
  );
  const rejected = async () => (await history.pool.query('select from change_rejected')).rowCount;
  await eventually(rejected).toBe(1);
  const sealer = createSealer([Buffer.alloc(32)]);
  const retry = { db: history.db, sealer, recordBatch: createBatchRecorder({ sealer, now: Date.now }) };
  const clientOf = async () => 'no client';
  await retryRejected({ ...retry, mapping: readMapping(JSON.stringify(mapping('code'))), clientOf }, {});
  const [[flag], [tag]] = [await attributionsOf(history), await attributionsOf(history, 'tag')];
  expect(tag).toEqual({
    entity: 'tag',
    entityId: 'a',
    who: 'Jane (u-1) for Acme (c-1)',
    correlationId: flag?.correlationId,
    context: '{"ip":"********","via":"ui"}',
  });
});

test('a context that masks make too large is left out', async () => {
  const { source, history, running, apply } = await captureFlags();
  await running.stop();
  const masked = { ...tables, 'public.flags': { ...tables['public.flags'], mask: ['enabled.*'] } };
  await startCapture({ source, history, tables: masked }).running;
  const enabled = Object.fromEntries(Array.from({ length: 400 }, (_, place) => [`p${place}`, 1]));
  await apply(
    [sayWho({ ...jane, context: { enabled } }), insert(1), sayWho({ context: { enabled: { a: 1 } } }), insert(2)].join(
      ';',
    ),
  );
  await eventually(async () => (await attributionsOf(history)).map(({ context }) => context)).toEqual([
    null,
    '{"enabled":{"a":"********"}}',
  ]);
});

test('an id without a name is named by the table of the people, from its snapshot on', async () => {
  const source = databases.openSource();
  await source.pool.query(`${definition};
    create table users (id int primary key, name text); alter table users replica identity full;
    insert into users values (1, 'Jane'), (2, 'Zoe')`);
  const history = databases.openHistory();
  const people = { 'public.users': { entity: 'user', name: 'name' } };
  const mapping = { version: 1, tenant: { value: tenant }, people: 'user', tables: { ...tables, ...people } };
  await startCapture({ source, history, mapping, choice: { snapshot: true } }).running;
  await source.pool.query(`insert into flags values (1, true, null, '1')`);
  await source.pool.query(
    `update users set name = 'Jane Doe' where id = 1; insert into flags values (2, true, null, '1')`,
  );
  await source.pool.query(`begin; ${sayWho({ actorId: '2' })}; ${insert(3)}; commit`);
  await source.pool.query(`insert into flags values (4, true, 'Dora', '1'), (5, true, null, '9')`);
  const byFlag = async () => (await attributionsOf(history)).map(({ entityId, who }) => `${entityId} ${who}`);
  await eventually(byFlag).toEqual(['1 Jane (1)', '2 Jane Doe (1)', '3 Zoe (2)', '4 Dora (1)', '5 unknown (9)']);
});
