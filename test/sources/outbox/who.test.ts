import { expect, test } from 'vitest';
import { countOfEntries } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { useHistory } from '../history.ts';
import { attributionsOf, byRows, definition, groupsOf, tables } from '../who.ts';
import { createApplication, startRelay } from './relayed.ts';

const openHistory = useHistory();

async function createFlags() {
  const application = await createApplication(openHistory(), definition, tables);
  const apply = async (statements: string) => {
    await application.pool.query(`begin; ${statements}; commit`);
  };
  const attributions = async () =>
    (await attributionsOf(application.history)).sort((a, b) => Number(a.entityId) - Number(b.entityId));
  const byFlag = async () => (await attributions()).map(({ entityId, who }) => `${entityId} ${who}`);
  return { ...application, application, apply, attributions, byFlag };
}

const set = (name: string, value: string | object) =>
  `select set_config('annals.${name}', $m$${typeof value === 'string' ? value : JSON.stringify(value)}$m$, true)`;
const setWho = (value: string | object) => set('who', value);
const insert = (id: number) => `insert into flags values (${id}, true)`;
const jane = { actor: 'Jane', actorId: 'u-1', onBehalfOf: { name: 'Acme', id: 'c-1' } };

test('annals.who counts from where it is set, before annals.actor and annals.context', async () => {
  const { application, apply, attributions } = await createFlags();
  const single = `${set('actor', 'Zoe')}; ${set('context', '{"ip": "::1"}')}`;
  await apply([single, insert(1), setWho(jane), insert(2), insert(3), setWho({ actorId: 'u-2' }), insert(4)].join(';'));
  await apply(
    [setWho(jane), insert(5), 'savepoint one', setWho({ actor: 'Ben' }), insert(6), 'rollback to one', insert(7)].join(
      ';',
    ),
  );
  await apply([setWho({ ...jane, context: { ip: '::2' } }), `select annals.record('flag', '8', null, '{}')`].join(';'));
  await apply([setWho(jane), `${insert(9)}; delete from flags where id = 9`].join(';'));
  await apply(insert(10));
  startRelay(application);
  const janes = 'Jane (u-1) for Acme (c-1)';
  await eventually(async () =>
    (await attributions()).map(({ entityId, who, context }) => `${entityId} ${who} ${context}`),
  ).toEqual([
    ...['1 Zoe {"ip":"::1"}', `2 ${janes} null`, `3 ${janes} null`, '4 unknown (u-2) null', `5 ${janes} null`],
    ...[`7 ${janes} null`, `8 ${janes} {"ip":"::2"}`, `9 ${janes} null`, `9 ${janes} null`, '10 unknown null'],
  ]);
});

test('a name and an id come from one source: setting, then row, then a new row of another table', async () => {
  const { application, apply, byFlag } = await createFlags();
  for (const [statements] of byRows) await apply(statements);
  await apply(`${setWho({ actorId: 'u-1' })}; insert into flags values (21, true, 'Dora', 'u-4')`);
  await apply(`${setWho({ context: { ip: '::1' } })}; insert into flags values (22, true, 'Dora', 'u-4')`);
  startRelay(application);
  await eventually(async () => (await byFlag()).map((text) => text.slice(3))).toEqual([
    ...byRows.flatMap(([, names]) => names),
    'unknown (u-1)',
    'Dora (u-4)',
  ]);
});

test('a setting that cannot be read fails no statement, and none counts, with a warning without content', async () => {
  const { application, apply, attributions, byFlag } = await createFlags();
  const unreadable = [
    ...['{', '[]', 'canary', '{"actor": 17}', '{"actor": "\\ud800"}', '{"actor": "\\u0000canary"}', '{"canary": 1}'],
    `{"actor": "${'x'.repeat(200_000)}"}`,
    `{"context": ${'['.repeat(50_000)}`,
    '"\\xff\\u00"',
  ];
  for (const [place, text] of unreadable.entries()) {
    const [zoe, ada] = [set('actor', 'Zoe'), setWho({ actor: 'Ada' })];
    await apply(
      [zoe, set('context', '{"ip":"::1"}'), ada, setWho(text), insert(2 * place), insert(2 * place + 1)].join(';'),
    );
  }
  await apply(`${setWho('')}; ${insert(99)}; truncate flags`);
  const { messages } = startRelay(application);
  await eventually(async () => (await byFlag()).filter((text) => text.endsWith(' unknown'))).toHaveLength(42);
  expect((await attributions()).map(({ context }) => context)).not.toContain('{"ip":"::1"}');
  const warning = 'an annals.who of the source cannot be read: its changes are recorded without it';
  expect(new Set(messages)).toEqual(new Set([warning]));
});

test('the changes of a transaction share a correlation id, whatever lane they are in, and one alone has none', async () => {
  const { application, pool, history, apply, attributions } = await createFlags();
  const relayed = startRelay(application);
  await apply(`${insert(1)}; savepoint one; ${insert(99)}; rollback to one; update flags set enabled = true`);
  await apply('insert into flags select n, true from generate_series(2, 40) n');
  await apply(`${insert(41)}; update flags set id = 42 where id = 41`);
  await apply(`${insert(43)}; ${setWho({ correlationId: 'request 7' })}; ${insert(44)}`);
  await apply(`${insert(45)}; select annals.record('note', '1', null, '{}')`);
  await apply(`select annals.record('note', '2', null, '{}')`);
  await apply('update flags set enabled = false where id in (1, 2)');
  await apply('update flags set enabled = null where id = 3; update flags set enabled = true where false');
  await eventually(() => countOfEntries(history)).toBe(51);
  const groups = (entity?: string) => attributionsOf(history, entity).then(groupsOf);
  const entries = await attributionsOf(history);
  const ids = new Map(entries.map(({ correlationId, entityId }) => [entityId, correlationId]));
  expect(groupsOf(entries.filter(({ entityId }) => entityId === '1'))).toEqual(['-', 'a']);
  expect(groupsOf(entries.filter(({ entityId }) => entityId === '3'))).toEqual(['a', '-']);
  const many = entries.filter(({ entityId }) => Number(entityId) > 1 && Number(entityId) <= 40);
  expect(new Set(groupsOf(many.slice(0, 39)))).toEqual(new Set(['a']));
  const last = (await attributions()).filter(({ entityId }) => Number(entityId) > 40);
  expect(groupsOf(last)).toEqual(['a', 'a', 'a', 'b', 'request 7', 'c']);
  expect(await groups('note')).toEqual(['a', '-']);
  const [note] = await attributionsOf(history, 'note');
  expect(note?.correlationId).toBe(ids.get('45'));
  await eventually(async () => (await pool.query('select from annals.outbox')).rowCount).toBe(0);
  await relayed.stop();
});

test('a lane that is relayed later gives the same correlation id', async () => {
  const { application, pool, apply, attributions } = await createFlags();
  await apply('insert into flags select n, true from generate_series(1, 40) n');
  const client = await pool.connect();
  await client.query('begin; select from annals.lane where lane < 8 for update');
  startRelay(application);
  await eventually(async () => (await pool.query('select from annals.outbox where lane >= 8')).rowCount).toBe(0);
  expect((await attributions()).length).toBeLessThan(40);
  await client.query('commit');
  client.release();
  await eventually(attributions).toHaveLength(40);
  expect(new Set(groupsOf(await attributions()))).toEqual(new Set(['a']));
});

test('two relays and four writers: a correlation id is of one transaction, and of all its changes', async () => {
  const { application, pool, history } = await createFlags();
  startRelay(application);
  startRelay(application);
  await Promise.all(
    [1, 2, 3, 4].map(async (writer) => {
      for (let round = 0; round < 30; round++) {
        const ids = Array.from(
          { length: 1 + ((writer + round) % 3) },
          (_, place) => 1000 * writer + 10 * round + place,
        );
        const inserts = ids.map((id) => `insert into flags values (${id}, true, null, pg_current_xact_id()::text)`);
        await pool.query(`begin; ${inserts.join('; ')}; commit`);
      }
    }),
  );
  await eventually(() => countOfEntries(history)).toBe(240);
  // The id of the actor is the transaction.
  const byTransaction = Map.groupBy(await attributionsOf(history), ({ who }) => who);
  const ids = [...byTransaction.values()].map((changes) => new Set(changes.map(({ correlationId }) => correlationId)));
  expect(ids.filter(({ size }) => size !== 1)).toEqual([]);
  const expected = [...byTransaction.values()].map(({ length }) => length > 1);
  expect(ids.map((of) => !of.has(null))).toEqual(expected);
  expect(new Set(ids.flatMap((of) => [...of])).size).toBe(1 + expected.filter(Boolean).length);
  await eventually(async () => (await pool.query('select from annals.outbox')).rowCount).toBe(0);
});

test('rows by the SQL of an older version are recorded, and the relay asks for the SQL of today', async () => {
  const { application, pool, attributions } = await createFlags();
  await pool.query(
    `insert into annals.outbox (lane, at, transaction, source, after, actor) select n, now(), pg_current_xact_id(), 'public.flags',
            jsonb_build_object('id', n, 'enabled', true), case n when 1 then 'Zoe' end from generate_series(1, 2) n
     union all select -1, now(), pg_current_xact_id(), null, null, 'Ada';
     drop function annals.count_changes`,
  );
  const { messages } = startRelay(application);
  await eventually(attributions).toMatchObject([
    { entityId: '1', who: 'Zoe', correlationId: null },
    { entityId: '2', who: 'Ada', correlationId: null },
  ]);
  expect(messages.join()).toContain('the triggers are of an older version');
  await application.install();
  await pool.query(insert(3));
  await eventually(attributions).toHaveLength(3);
});
