/** The role that owns the outbox and its functions. Nobody logs in as it. */
export const ownerRole = 'annals_outbox';
/** The role that reads and empties the outbox. The relay's login is a member of it. */
export const relayRole = 'annals_relay';
/** What the comment on the schema says, so that it is known as ours. */
export const schemaComment = 'Annals outbox';
/** Documents are divided into so many lanes. */
export const lanes = 16;

/** Roles and schema. Refuses a schema of the same name that is not ours. */
export const createSchema = `do $annals$
begin
  if current_setting('server_version_num')::int < 140000 then
    raise exception 'the outbox needs PostgreSQL 14 or later';
  end if;
  if to_regnamespace('annals') is not null
     and obj_description(to_regnamespace('annals'), 'pg_namespace') is distinct from '${schemaComment}' then
    raise exception 'there is a schema annals that is not the outbox of Annals';
  end if;
  if to_regrole('${ownerRole}') is null then create role ${ownerRole} nologin; end if;
  if to_regrole('${relayRole}') is null then create role ${relayRole} nologin; end if;
  if not pg_has_role(current_user, '${ownerRole}', 'member') then grant ${ownerRole} to current_user; end if;
end $annals$;
create schema if not exists annals authorization ${ownerRole};
comment on schema annals is '${schemaComment}';`;

/** Tables and functions, made as the owner. */
export const createOutbox = `set local role ${ownerRole};
create table if not exists annals.installation (
  singleton boolean primary key default true check (singleton),
  id uuid not null default gen_random_uuid()
);
insert into annals.installation default values on conflict do nothing;
create table if not exists annals.lane (lane smallint primary key);
insert into annals.lane select generate_series(0, ${lanes - 1}) on conflict do nothing;
create table if not exists annals.outbox (
  lane smallint not null,
  number bigint generated always as identity,
  at timestamptz not null,
  transaction xid8 not null,
  -- a table as the mapping names it, or null for a change that was written by hand
  source text,
  before jsonb,
  after jsonb,
  -- of a change that was written by hand: tenant, entity, entityId, name
  document jsonb,
  actor text,
  context text,
  -- why a row could not be written
  fault text,
  primary key (lane, number)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000);
revoke all on all tables in schema annals from public;
revoke all on schema annals from public;
grant usage on schema annals to ${relayRole};
grant select, delete on annals.outbox to ${relayRole};
grant select on annals.installation to ${relayRole};
grant select, update on annals.lane to ${relayRole};

-- Takes a value away, or puts a token in its place that tells only whether both sides are equal. A path that meets an array goes on in
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
  one record;
begin
  for rule in select jsonb_array_elements(rules) loop
    select h.before, h.after into one
      from annals.hide(before, after, array(select jsonb_array_elements_text(rule -> 'path')), (rule ->> 'masks')::boolean) as h;
    before := one.before;
    after := one.after;
  end loop;
end $annals$;

create or replace function annals.lane_of(source text, id text) returns smallint
language sql immutable set search_path = pg_catalog, pg_temp
return (hashtextextended(source || ' ' || id, 0) & ${lanes - 1})::smallint;

-- A text column that holds JSON, as JSON. What is none stays the text.
create or replace function annals.json_of(value jsonb) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $annals$
begin
  return (value #>> '{}')::jsonb;
exception when others then
  return value;
end $annals$;

create or replace function annals.write_change(source text, rules jsonb, before jsonb, after jsonb, fault text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $annals$
declare
  id text;
  col text;
  one record;
begin
  select string_agg(coalesce(before, after) ->> k, ',') into id from jsonb_array_elements_text(rules -> 'id') as k;
  if jsonb_array_length(rules -> 'hide') > 0 then
    for col in select jsonb_array_elements_text(rules -> 'json') loop
      if jsonb_typeof(before -> col) = 'string' then before := jsonb_set(before, array[col], annals.json_of(before -> col)); end if;
      if jsonb_typeof(after -> col) = 'string' then after := jsonb_set(after, array[col], annals.json_of(after -> col)); end if;
    end loop;
    select h.before, h.after into one from annals.hide_all(before, after, rules -> 'hide') as h;
    before := one.before;
    after := one.after;
  end if;
  insert into annals.outbox (lane, at, transaction, source, before, after, actor, context, fault)
    values (annals.lane_of(source, coalesce(id, '')), clock_timestamp(), pg_current_xact_id(), source, before, after,
            nullif(current_setting('annals.actor', true), ''), nullif(current_setting('annals.context', true), ''), fault);
end $annals$;

create or replace function annals.write_row() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set timezone = 'UTC' set intervalstyle = 'postgres' set bytea_output = 'hex'
set extra_float_digits = 1 as $annals$
declare
  rules constant jsonb := tg_argv[1];
  before jsonb;
  after jsonb;
  col text;
  value jsonb;
  fault text;
begin
  -- A row may be too large for jsonb. That must not fail the application.
  begin
    if tg_op <> 'INSERT' then before := to_jsonb(old); end if;
    if tg_op <> 'DELETE' then after := to_jsonb(new); end if;
    for col in select jsonb_array_elements_text(rules -> 'text') loop
      if jsonb_typeof(before -> col) <> 'null' then
        execute format('select to_jsonb(($1).%I::text)', col) into value using old;
        before := jsonb_set(before, array[col], value);
      end if;
      if jsonb_typeof(after -> col) <> 'null' then
        execute format('select to_jsonb(($1).%I::text)', col) into value using new;
        after := jsonb_set(after, array[col], value);
      end if;
    end loop;
    before := before - array(select jsonb_array_elements_text(rules -> 'ignore'));
    after := after - array(select jsonb_array_elements_text(rules -> 'ignore'));
  exception when others then
    fault := 'the row cannot be written as JSON (SQLSTATE ' || sqlstate || ')';
    before := null;
    after := null;
  end;
  if fault is null and before = after then return null; end if;
  perform annals.write_change(tg_argv[0], rules, before, after, fault);
  return null;
end $annals$;

create or replace function annals.write_truncate() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp set timezone = 'UTC' set intervalstyle = 'postgres' set bytea_output = 'hex'
set extra_float_digits = 1 set row_security = off as $annals$
declare
  rules constant jsonb := tg_argv[1];
  before jsonb;
begin
  -- A snapshot that is older than the truncate's lock does not see all rows that it deletes.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'Annals cannot record a truncate of %.% above read committed', tg_table_schema, tg_table_name
      using hint = 'Truncate it in a transaction of its own, or delete the rows.';
  end if;
  for before in execute format('select to_jsonb(t) from only %I.%I t', tg_table_schema, tg_table_name) loop
    before := before - array(select jsonb_array_elements_text(rules -> 'ignore'));
    perform annals.write_change(tg_argv[0], rules, before, null, null);
  end loop;
  return null;
end $annals$;`;

/** Nobody calls the functions but the triggers, and annals.record where the operator grants it. */
export const revokeFunctions = `revoke all on all functions in schema annals from public;
grant usage on schema annals to session_user;
grant execute on function annals.write_row(), annals.write_truncate() to session_user;
reset role;`;

/** The opposite of everything. Refuses while changes wait. */
export const removeOutbox = `begin;
set local lock_timeout = '5s';
do $annals$
declare
  found record;
  waiting bigint;
begin
  if to_regnamespace('annals') is null then
    raise notice 'there is no outbox';
    return;
  end if;
  if obj_description(to_regnamespace('annals'), 'pg_namespace') is distinct from '${schemaComment}' then
    raise exception 'there is a schema annals that is not the outbox of Annals';
  end if;
  for found in
    select t.tgname, t.tgrelid::regclass as target
      from pg_trigger t join pg_proc p on p.oid = t.tgfoid
     where p.pronamespace = to_regnamespace('annals') and t.tgparentid = 0
  loop
    execute format('drop trigger %I on %s', found.tgname, found.target);
  end loop;
  set local role ${ownerRole};
  select count(*) into waiting from annals.outbox;
  reset role;
  if waiting > 0 then
    raise exception 'annals.outbox still has % changes', waiting
      using hint = 'Run annals relay until it is empty, or delete them.';
  end if;
  drop schema annals cascade;
end $annals$;
drop owned by ${ownerRole};
commit;
-- The roles serve every database of the server. Where no other one has an outbox:
--   drop role ${ownerRole}; drop role ${relayRole};`;
