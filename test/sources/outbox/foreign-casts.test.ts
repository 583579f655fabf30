import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { entriesOf } from '../../support/server/entries.ts';
import { eventually } from '../../support/server/patience.ts';
import { useHistory } from '../history.ts';
import { createApplication, startRelay } from './relayed.ts';

const openHistory = useHistory();

// PostgreSQL converts values to JSON and to text by the casts of their types, whose functions run with the rights of
// who converts.

const tables = {
  'public.moods': { entity: 'mood' },
  'public.pairs': { entity: 'pair' },
  'public.cards': { entity: 'card' },
};
const definition = `
create type mood as enum ('good', 'bad');
create type pair as (one int, mood mood);
create table moods (id int primary key, mood mood);
create table pairs (id int primary key, pairs pair[], pair pair);
create table cards (id int primary key, card text);
create table called (by_role text);
create function mood_json(mood) returns json language plpgsql as
  $$ begin insert into public.called values (current_user); return '{"mood": 1}'; end $$;
create function pair_text(pair) returns text language plpgsql as
  $$ begin insert into public.called values (current_user); return 'pair'; end $$;
grant insert on called to public`;
const changes = `
insert into moods values (1, 'good'), (2, 'bad');
update moods set mood = 'good' where id = 2;
truncate moods;
insert into pairs values (1, array[row(1, 'good')::pair], row(2, 'bad')::pair);
insert into cards values (1, 'one')`;

/** A role that owns the types and their tables, and nothing else of the database. */
async function withOwner() {
  const made = await createApplication(openHistory(), definition, tables);
  const role = `owner_${randomBytes(4).toString('hex')}`;
  await made.pool.query(`create role ${role}; alter type mood owner to ${role}; alter type pair owner to ${role};
    alter table moods owner to ${role}; alter table pairs owner to ${role};
    alter function mood_json(mood) owner to ${role}; alter function pair_text(pair) owner to ${role}`);
  onTestFinished(async () => {
    await made.pool.query(`drop owned by ${role} cascade; drop role ${role}`);
  });
  return { ...made, role };
}

test('a cast to JSON by the owner of a table never runs with the rights of the outbox: its rows are rejected, others recorded', async () => {
  const made = await withOwner();
  await made.pool.query('create cast (mood as json) with function mood_json(mood)');
  await made.pool.query(changes);
  expect((await made.pool.query('select distinct by_role from called')).rows).toEqual([]);
  startRelay(made);
  await eventually(() => entriesOf(made.history)).toMatchObject([{ entity: 'card' }]);
  const reason = `the type public.mood has a cast to json by ${made.role}, which would run with the rights of annals_outbox`;
  const rejected = async () =>
    (await made.history.pool.query('select distinct reason, position from change_rejected')).rows;
  // Two rows inserted, one updated, one truncate, and the row of the other table.
  await eventually(async () => (await rejected()).map((row) => row.reason)).toEqual(Array(5).fill(reason));
});

test('neither does a cast to text: the rows are recorded as PostgreSQL writes them', async () => {
  const made = await withOwner();
  await made.pool.query('create cast (pair as text) with function pair_text(pair)');
  await made.pool.query(changes);
  expect((await made.pool.query('select distinct by_role from called')).rows).toEqual([]);
  const { rows } = await made.pool.query(`select after from annals.outbox where source = 'public.pairs'`);
  expect(rows).toEqual([{ after: { id: 1, pairs: '{"(1,good)"}', pair: '(2,bad)' } }]);
});

test('a cast to JSON by a superuser is used', async () => {
  const made = await createApplication(openHistory(), definition, tables);
  await made.pool.query('create cast (mood as json) with function mood_json(mood)');
  await made.pool.query(changes);
  const { rows } = await made.pool.query(
    `select after from annals.outbox where source = 'public.moods' and after is not null`,
  );
  expect(rows[0]).toEqual({ after: { id: 1, mood: { mood: 1 } } });
});
