// Long because most of it is SQL: the functions that the application's database gets, one after the other as they are run.

import { foreignCast, foreignCastFunction } from './foreign-casts.ts';
import { rowDocument, writeStatements } from './outbox-statements.ts';

/** Documents are divided into so many lanes. */
export const lanes = 16;

/** Whether the column `a` has values of a composite type: itself, as elements of an array, or below a domain. */
export const hasComposites = `exists (
  with recursive used as (
    select a.atttypid as oid
    union
    select case when t.typtype = 'd' then t.typbasetype else t.typelem end
      from used join pg_type t using (oid) where t.typtype = 'd' or t.typelem <> 0
  ) select from used join pg_type t using (oid) where t.typtype = 'c')`;

/** Of each trigger that writes: values are written alike whatever the session's settings are. */
const triggerSettings = `security definer
set search_path = pg_catalog, pg_temp set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'postgres' set bytea_output = 'hex'
set extra_float_digits = 1`;

/** In each of them: its arguments, and the columns that the table did not have when the SQL ran. */
const triggerArguments = `  source constant text := tg_argv[0];
  rules jsonb := tg_argv[1];
  ids constant text[] := tg_argv[2];
  ignored constant text[] := tg_argv[3];
  later constant text[] := array(select a.attname::text from pg_attribute a
    where a.attrelid = coalesce(pg_partition_root(tg_relid), tg_relid) and a.attnum > 0 and not a.attisdropped
      and a.attnum || ' ' || a.attname <> all (tg_argv[5]::text[]));`;
const maskLater = `  if later <> '{}' then rules := annals.with_masks(rules, later); end if;`;

/** The functions of the triggers, made as the owner of the outbox (docs/decisions/outbox.md). */
export const createFunctions = `-- Takes a value away, or puts a token in its place that tells only whether both sides are equal. A path that meets an array goes on in
-- each of its elements.
create or replace function annals.hide(inout before jsonb, inout after jsonb, path text[], masks boolean)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $annals$
declare
  is_array constant boolean := 'array' in (coalesce(jsonb_typeof(before), ''), coalesce(jsonb_typeof(after), ''));
  key text;
  one record;
begin
  if cardinality(path) = 0 then
    if masks then
      if jsonb_typeof(after) <> 'null' then
        after := to_jsonb(case when before is null or before = after then '0' else '1' end);
      end if;
      if jsonb_typeof(before) <> 'null' then before := '"0"'; end if;
    else
      before := null;
      after := null;
    end if;
    return;
  end if;
  for key in
    select k from (
      select jsonb_object_keys(side) as k from (values (before), (after)) as sides (side) where jsonb_typeof(side) = 'object'
      union
      select generate_series(0, jsonb_array_length(side) - 1)::text
        from (values (before), (after)) as sides (side) where jsonb_typeof(side) = 'array'
    ) as keys
    where is_array or path[1] = '*' or k = path[1]
  loop
    select before #> array[key] as before, after #> array[key] as after into one;
    if is_array then
      select h.before, h.after into one from annals.hide(before #> array[key], after #> array[key], path, masks) as h;
    end if;
    if path[1] in ('*', key) then
      select h.before, h.after into one from annals.hide(one.before, one.after, path[2:], masks) as h;
    end if;
    if before #> array[key] is not null then
      before := case when one.before is null then before #- array[key] else jsonb_set(before, array[key], one.before) end;
    end if;
    if after #> array[key] is not null then
      after := case when one.after is null then after #- array[key] else jsonb_set(after, array[key], one.after) end;
    end if;
  end loop;
end $annals$;

create or replace function annals.hide_all(inout before jsonb, inout after jsonb, rules jsonb)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $annals$
declare
  rule jsonb;
  key text;
  masks boolean;
  one record;
begin
  for place in 0 .. jsonb_array_length(rules) - 1 loop
    rule := rules -> place;
    key := rule -> 'path' ->> 0;
    masks := rule -> 'masks';
    if jsonb_array_length(rule -> 'path') = 1 and key <> '*' and coalesce(jsonb_typeof(before), 'object') = 'object'
       and coalesce(jsonb_typeof(after), 'object') = 'object' then
      -- A column, as most rules are: quicker than the general way, with the same result.
      if not masks then
        before := before - key;
        after := after - key;
      else
        if jsonb_typeof(after -> key) <> 'null' then
          after := jsonb_set(after, array[key],
                             case when before -> key is null or before -> key = after -> key then '"0"'::jsonb else '"1"' end);
        end if;
        if jsonb_typeof(before -> key) <> 'null' then before := jsonb_set(before, array[key], '"0"'); end if;
      end if;
    else
      one := annals.hide(before, after, array(select jsonb_array_elements_text(rule -> 'path')), masks);
      before := one.before;
      after := one.after;
    end if;
  end loop;
end $annals$;

-- The functions without a search_path of their own are called for each row by functions that have one.

create or replace function annals.lane_of(source text, id text) returns smallint
language sql immutable
return (hashtextextended(source || ' ' || id, 0) & ${lanes - 1})::smallint;

-- The id of a row whose table has several columns in it.
create or replace function annals.joined_id(one jsonb, ids text[]) returns text
language sql immutable
return (select string_agg(one ->> k, ',') from unnest(ids) as k);

create or replace function annals.id_of(one jsonb, ids text[]) returns text
language sql immutable
return case when cardinality(ids) = 1 then one ->> ids[1] else annals.joined_id(one, ids) end;

-- A text column that holds JSON, as JSON. What is none stays the text.
create or replace function annals.json_of(value jsonb) returns jsonb
language plpgsql immutable as $annals$
begin
  return (value #>> '{}')::jsonb;
exception when others then
  return value;
end $annals$;

${foreignCastFunction}

drop function if exists annals.row_json(record, text[]);

-- A row as an object, or text that says why it cannot be one: it may be too large. That must not fail the application.
create or replace function annals.row_json(one record, ignored text[], refused text) returns jsonb
language plpgsql stable as $annals$
begin
  if refused is not null then return to_jsonb(refused); end if;
  if cardinality(ignored) = 0 then return to_jsonb(one); end if;
  return to_jsonb(one) - ignored;
exception when others then
  return to_jsonb('the row cannot be written as JSON (SQLSTATE ' || sqlstate || ')');
end $annals$;

-- Both sides of a change without what the mapping hides, as {"before": …, "after": …}.
create or replace function annals.hidden(before jsonb, after jsonb, rules jsonb) returns jsonb
language plpgsql immutable as $annals$
declare
  col text;
  one record;
begin
  for place in 0 .. jsonb_array_length(rules -> 'json') - 1 loop
    col := rules -> 'json' ->> place;
    if jsonb_typeof(before -> col) = 'string' then before := jsonb_set(before, array[col], annals.json_of(before -> col)); end if;
    if jsonb_typeof(after -> col) = 'string' then after := jsonb_set(after, array[col], annals.json_of(after -> col)); end if;
  end loop;
  one := annals.hide_all(before, after, rules -> 'hide');
  return jsonb_build_object('before', one.before, 'after', one.after);
end $annals$;

-- The rules with a mask for each of these columns.
create or replace function annals.with_masks(rules jsonb, later text[]) returns jsonb
language sql immutable
return jsonb_build_object('json', coalesce(rules -> 'json', '[]'), 'hide', coalesce(rules -> 'hide', '[]') || (
  select jsonb_agg(jsonb_build_object('path', jsonb_build_array(k), 'masks', true)) from unnest(later) as k));

-- Whether a table needs a trigger for each row. A statement's trigger sees the rows of the table that the statement names, so it misses
-- what is written to a partition or a child by its own name. And it runs after the triggers of the rows: if one of those writes to the
-- same table, that change would come first.
create or replace function annals.writes_by_row(target regclass) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $annals$
  select exists (select from pg_class where oid = target and (relkind <> 'r' or relispartition))
      or exists (select from pg_inherits where target in (inhrelid, inhparent))
      -- A composite value is written as PostgreSQL's text, column by column.
      or exists (select from pg_attribute a
                  where a.attrelid = target and a.attnum > 0 and not a.attisdropped and ${hasComposites})
      -- AFTER triggers of the application for rows, and those for statements that run before ours. 1: row, 2: before, 28: insert, update
      -- or delete, 64: instead.
      or exists (select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
                  where t.tgrelid = target and not t.tgisinternal and t.tgtype & 66 = 0 and t.tgtype & 28 <> 0
                    and p.pronamespace <> 'annals'::regnamespace
                    and (t.tgtype & 1 = 1 or t.tgname::text collate "C" < 'annals_update'))
      -- A foreign key to the table itself that changes rows when a key changes.
      or exists (select from pg_constraint where conrelid = target and confrelid = target and contype = 'f'
                    and confupdtype in ('c', 'n', 'd'))
$annals$;

drop function if exists annals.write_change(text, jsonb, jsonb, jsonb, text);

-- The arguments of all triggers: the table as the mapping has it, the rules, and columns: of the id, those that are ignored, those that are
-- written as text, and all that the table had when this SQL ran, by number and name. A column that came later, also by a new name, may hold
-- what a mask hid: it is masked.
create or replace function annals.write_row() returns trigger
language plpgsql ${triggerSettings} as $annals$
declare
${triggerArguments}
  texts constant text[] := tg_argv[4];
  before jsonb;
  after jsonb;
  col text;
  value jsonb;
  fault text := ${foreignCast};
  id text;
  new_id text;
  parts int := 1;
begin
${maskLater}
  -- A row may be too large for jsonb. That must not fail the application.
  begin
    if tg_op <> 'INSERT' and fault is null then before := to_jsonb(old); end if;
    if tg_op <> 'DELETE' and fault is null then after := to_jsonb(new); end if;
    foreach col in array texts loop
      if jsonb_typeof(before -> col) <> 'null' then
        execute format('select to_jsonb(format(''%%s'', ($1).%I))', col) into value using old;
        before := jsonb_set(before, array[col], value);
      end if;
      if jsonb_typeof(after -> col) <> 'null' then
        execute format('select to_jsonb(format(''%%s'', ($1).%I))', col) into value using new;
        after := jsonb_set(after, array[col], value);
      end if;
    end loop;
    if cardinality(ignored) > 0 then
      before := before - ignored;
      after := after - ignored;
    end if;
  exception when others then
    fault := 'the row cannot be written as JSON (SQLSTATE ' || sqlstate || ')';
    before := null;
    after := null;
  end;
  if fault is null and before = after then return null; end if;
  id := coalesce(annals.id_of(coalesce(before, after), ids), '');
  if before is not null then new_id := annals.id_of(after, ids); end if;
  if rules <> '{}' then
    value := annals.hidden(before, after, rules);
    before := nullif(value -> 'before', 'null');
    after := nullif(value -> 'after', 'null');
  end if;
  -- A row that gets another id is two documents, each of which has its lane.
  if new_id <> id then parts := 2; end if;
  for part in 1 .. parts loop
    insert into annals.outbox (lane, at, transaction, source, before, after, document, actor, context, fault)
      values (annals.lane_of(source, case when part = 2 then new_id else id end), clock_timestamp(), pg_current_xact_id(), source,
              before, after, ${rowDocument},
              nullif(current_setting('annals.actor', true), ''), nullif(current_setting('annals.context', true), ''), fault);
  end loop;
  return null;
end $annals$;

-- The same for all rows of a statement at once.
create or replace function annals.write_statement() returns trigger
language plpgsql ${triggerSettings} as $annals$
declare
${triggerArguments}
  actor constant text := nullif(current_setting('annals.actor', true), '');
  context constant text := nullif(current_setting('annals.context', true), '');
  refused constant text := ${foreignCast};
  hides boolean;
begin
${maskLater}
  hides := rules <> '{}';
${writeStatements()}
  return null;
end $annals$;

-- At the end of a transaction: its first new row of a table that names an actor tells who made its changes. Its argument is the column.
create or replace function annals.take_actor() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $annals$
declare
  found text;
begin
  if current_setting('annals.actor_taken', true) = pg_current_xact_id()::text then return null; end if;
  found := annals.row_json(new, '{}', ${foreignCast}) ->> tg_argv[0];
  if found <> '' then
    perform set_config('annals.actor_taken', pg_current_xact_id()::text, true);
    update annals.outbox set document = coalesce(document, '{}') || jsonb_build_object('actor', found)
     where transaction = pg_current_xact_id();
  end if;
  return null;
end $annals$;

create or replace function annals.write_truncate() returns trigger
language plpgsql ${triggerSettings} set row_security = off as $annals$
declare
${triggerArguments}
  fault constant text := ${foreignCast};
  before jsonb;
  id text;
begin
${maskLater}
  if fault is not null then
    insert into annals.outbox (lane, at, transaction, source, fault)
      values (annals.lane_of(source, ''), clock_timestamp(), pg_current_xact_id(), source, fault);
    return null;
  end if;
  -- A snapshot that is older than the truncate's lock does not see all rows that it deletes.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'Annals cannot record a truncate of %.% above read committed', tg_table_schema, tg_table_name
      using hint = 'Truncate it in a transaction of its own, or delete the rows.';
  end if;
  for before in execute format('select to_jsonb(t) from only %I.%I t', tg_table_schema, tg_table_name) loop
    before := before - ignored;
    id := coalesce(annals.id_of(before, ids), '');
    if rules <> '{}' then before := annals.hidden(before, null, rules) -> 'before'; end if;
    insert into annals.outbox (lane, at, transaction, source, before, document, actor, context)
      values (annals.lane_of(source, id), clock_timestamp(), pg_current_xact_id(), source, before,
              case when later <> '{}' then jsonb_build_object('masked', later) end,
              nullif(current_setting('annals.actor', true), ''), nullif(current_setting('annals.context', true), ''));
  end loop;
  return null;
end $annals$;`;
