// Long because it is mostly SQL: the functions of the application's database, in the order of execution.

import { isWrittenAsText } from '../../postgres/source/source-catalogue.ts';
import { actorLane, groupLane, lanes, ownerRole } from './outbox-schema.ts';
import {
  documentOfPart,
  foreignCast,
  foreignCastFunction,
  withWho,
  writeStatements,
  writeTruncate,
} from './outbox-statements.ts';

/**
 * Settings of triggers that write. Values have the same form in any session; a short `lock_timeout` of the application
 * does not end its statement; and settings that make plans look expensive do not have each statement compiled.
 */
const triggerSettings = `security definer
set search_path = pg_catalog, pg_temp set timezone = 'UTC' set datestyle = 'ISO' set intervalstyle = 'postgres' set bytea_output = 'hex'
set extra_float_digits = 1 set lock_timeout = 0 set jit = off`;

/** Bytes. Longer settings are invalid anyway. */
const maxNameBytes = 40_000;
const maxWhoBytes = 64 * 1024;

/**
 * A setting of the application; null if it is empty. No function looks at its characters, which connection options may
 * leave incomplete. Only the relay decodes them, so they fail no statement. It cannot read what stands for a long text.
 */
export function setting(name: string, longest = maxNameBytes): string {
  const text = `current_setting('${name}', true)`;
  return `case when octet_length(${text}) > ${longest} then repeat('x', 2000) when ${text} <> '' then ${text} end`;
}

/** The setting `annals.who` as a member of the row's document. */
export const saidWho = `case when current_setting('annals.who', true) <> '' then jsonb_build_object('who',
    ${setting('annals.who', maxWhoBytes)}) end`;

/** The triggers' arguments, and the columns newer than the SQL. */
const triggerArguments = `  source constant text := tg_argv[0];
  target constant regclass := tg_relid;
  rules jsonb := tg_argv[1];
  ids constant text[] := tg_argv[2];
  ignored constant text[] := tg_argv[3];
  texts constant text[] := tg_argv[4];
  later constant text[] := array(select a.attname::text from pg_attribute a
    where a.attrelid = coalesce(pg_partition_root(tg_relid), tg_relid) and a.attnum > 0 and not a.attisdropped
      and a.attnum || ' ' || a.attname <> all (tg_argv[5]::text[]));
  refused constant text := ${foreignCast};
  actor constant text := ${setting('annals.actor')};
  context constant text := ${setting('annals.context')};
  said constant jsonb := ${saidWho};
  written bigint;`;
const maskLater = `  if later <> '{}' then rules := annals.with_masks(rules, later); end if;`;

/**
 * Maximum bytes of JSON of both sides. Below PostgreSQL's limits on the way to the relay: 256 MiB for the members of an
 * object, 1 GiB for a row or text.
 */
const maxBytes = 128 * 1024 * 1024;

/** Measures the text only if it could be larger: a character takes at most six times its bytes. */
export const isTooLarge = `coalesce(pg_column_size(before), 0) + coalesce(pg_column_size(after), 0) > ${maxBytes / 8}
       and coalesce(octet_length(before::text), 0) + coalesce(octet_length(after::text), 0) > ${maxBytes}`;
export const tooLarge = `the change has more than ${maxBytes / 1024 / 1024} MiB`;

/** The trigger functions, created by the owner of the outbox (docs/decisions/outbox.md). */
export const createFunctions = `-- Removes a value, or replaces it with a token that shows only whether both sides are equal. A path applies to each
-- element of an array.
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
      -- Most rules name a column: faster than the general case, with the same result.
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

-- Functions without a search_path are called for each row, by functions that have one.

create or replace function annals.lane_of(source text, id text) returns smallint
language sql immutable
return (hashtextextended(source || ' ' || id, 0) & ${lanes - 1})::smallint;

-- An id of several columns.
create or replace function annals.joined_id(one jsonb, ids text[]) returns text
language sql immutable
return (select string_agg(one ->> k, ',') from unnest(ids) as k);

create or replace function annals.id_of(one jsonb, ids text[]) returns text
language sql immutable
return case when cardinality(ids) = 1 then one ->> ids[1] else annals.joined_id(one, ids) end;

-- A text column as JSON. Invalid JSON stays text.
create or replace function annals.json_of(value jsonb) returns jsonb
language plpgsql immutable as $annals$
begin
  return (value #>> '{}')::jsonb;
exception when others then
  return value;
end $annals$;

${foreignCastFunction}

drop function if exists annals.row_json(record, text[]), annals.row_json(record, text[], text), annals.hidden(jsonb, jsonb, jsonb);

-- The row itself. The caller names its columns, which PostgreSQL does not know for rows of a transition table.
create or replace function annals.same(one record) returns record
language plpgsql immutable as 'begin return one; end';

-- These columns of a row as texts of at most 1,000 characters, if the whole row cannot be written.
create or replace function annals.key_of(one anyelement, target regclass, ids text[]) returns jsonb
language plpgsql stable as $annals$
declare
  key jsonb;
begin
  execute (
    select format('select jsonb_build_object(%s) from annals.same($1) as q (%s)',
                  string_agg(format('%L, left(format(''%%s'', q.%I), 1000)', attname, attname), ', ') filter (where attname = any (ids)),
                  string_agg(format('%I %s', attname, format_type(atttypid, null)), ', ' order by attnum))
      from pg_attribute where attrelid = target and attnum > 0 and not attisdropped) into key using one;
  return key;
exception when others then
  return '{}';
end $annals$;

-- A change without hidden values, with the previous id and, if it differs, the new one. No id: nothing changed. Never
-- raises an error: a row that cannot be written becomes a fault, with its key in the document. Writes nothing, since a
-- block that writes takes a transaction id, and more than 64 of these in a transaction slow down all sessions.
-- "anyelement" makes a copy for each row type: PL/pgSQL keeps the plan of an expression for the first type it sees.
create or replace function annals.change_of(
  old_row anyelement, new_row anyelement, target regclass, rules jsonb, ids text[], ignored text[], texts text[], later text[], refused text,
  out before jsonb, out after jsonb, out id text, out new_id text, out document jsonb, out fault text)
language plpgsql stable as $annals$
declare
  col text;
  value jsonb;
begin
  fault := refused;
  if fault is null then
    begin
      before := to_jsonb(old_row);
      after := to_jsonb(new_row);
      foreach col in array texts loop
        if jsonb_typeof(before -> col) <> 'null' then
          execute format('select to_jsonb(format(''%%s'', ($1).%I))', col) into value using old_row;
          before := jsonb_set(before, array[col], value);
        end if;
        if jsonb_typeof(after -> col) <> 'null' then
          execute format('select to_jsonb(format(''%%s'', ($1).%I))', col) into value using new_row;
          after := jsonb_set(after, array[col], value);
        end if;
      end loop;
      if cardinality(ignored) > 0 then
        before := before - ignored;
        after := after - ignored;
      end if;
      -- Numbers are compared by value, ids as text.
      if before = after and annals.id_of(before, ids) is not distinct from annals.id_of(after, ids) then return; end if;
      id := coalesce(annals.id_of(coalesce(before, after), ids), '');
      if before is not null then new_id := annals.id_of(after, ids); end if;
      if rules <> '{}' then
        for place in 0 .. jsonb_array_length(rules -> 'json') - 1 loop
          col := rules -> 'json' ->> place;
          if jsonb_typeof(before -> col) = 'string' then before := jsonb_set(before, array[col], annals.json_of(before -> col)); end if;
          if jsonb_typeof(after -> col) = 'string' then after := jsonb_set(after, array[col], annals.json_of(after -> col)); end if;
        end loop;
        select h.before, h.after into before, after from annals.hide_all(before, after, rules -> 'hide') as h;
      end if;
      if ${isTooLarge} then
        fault := '${tooLarge}';
      else
        if later <> '{}' then document := jsonb_build_object('masked', later); end if;
        return;
      end if;
    exception when others then
      fault := format('the row cannot be written as JSON (SQLSTATE %s)', sqlstate);
    end;
  end if;
  before := null;
  after := null;
  new_id := null;
  -- Later columns may have values that a mask hid.
  document := jsonb_build_object('key', annals.key_of(coalesce(old_row, new_row), target,
    array(select k from unnest(ids) as k where k <> all (later))));
  id := coalesce(annals.id_of(document -> 'key', ids), '');
end $annals$;

-- The rules, with a mask for each of these columns.
create or replace function annals.with_masks(rules jsonb, later text[]) returns jsonb
language sql immutable
return jsonb_build_object('json', coalesce(rules -> 'json', '[]'), 'hide', coalesce(rules -> 'hide', '[]') || (
  select jsonb_agg(jsonb_build_object('path', jsonb_build_array(k), 'masks', true)) from unnest(later) as k));

-- Whether a table needs row triggers. A statement trigger sees only the rows of the named table, so it misses writes to
-- a partition or child by its own name. It also runs after row triggers: if one of those writes to the same table, that
-- change would come first.
create or replace function annals.writes_by_row(target regclass) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $annals$
  select exists (select from pg_class where oid = target and (relkind <> 'r' or relispartition))
      or exists (select from pg_inherits where target in (inhrelid, inhparent))
      -- Values written as PostgreSQL's text, column by column.
      or exists (select from pg_attribute a
                  where a.attrelid = target and a.attnum > 0 and not a.attisdropped and ${isWrittenAsText})
      -- The application's AFTER triggers for rows, and for statements that run before ours. 1: row, 2: before, 28: insert,
      -- update or delete, 64: instead.
      or exists (select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
                  where t.tgrelid = target and not t.tgisinternal and t.tgtype & 66 = 0 and t.tgtype & 28 <> 0
                    and p.pronamespace <> 'annals'::regnamespace
                    and (t.tgtype & 1 = 1 or t.tgname::text collate "C" < 'annals_update'))
      -- A self-referencing foreign key that changes rows when a key changes.
      or exists (select from pg_constraint where conrelid = target and confrelid = target and contype = 'f'
                    and confupdtype in ('c', 'n', 'd'))
$annals$;

drop function if exists annals.write_change(text, jsonb, jsonb, jsonb, text);

-- Notes that a transaction has several changes, which its first cannot know: one alone belongs to no group. The number
-- of the note is the transaction, so the primary key finds it.
create or replace function annals.count_changes(written bigint) returns void
language plpgsql as $annals$
declare
  this text;
  counted text;
begin
  -- A statement that changes nothing takes no transaction id.
  if written = 0 then return; end if;
  this := pg_current_xact_id()::text;
  counted := current_setting('annals.changes', true);
  if counted = this || ' several' then return; end if;
  if written = 1 and counted is distinct from this || ' one' then
    perform set_config('annals.changes', this || ' one', true);
  else
    perform set_config('annals.changes', this || ' several', true);
    insert into annals.outbox (lane, number, at, transaction) overriding system value
      values (${groupLane}, this::bigint, clock_timestamp(), pg_current_xact_id()) on conflict do nothing;
  end if;
end $annals$;

-- The arguments of all triggers: the table as in the mapping, the rules, and columns: of the id, ignored, written as
-- text, and all when this SQL ran, by number and name. Later or renamed columns are masked, since they may have values
-- that a mask hid.
create or replace function annals.write_row() returns trigger
language plpgsql ${triggerSettings} as $annals$
declare
${triggerArguments}
  change record;
  parts int;
begin
${maskLater}
  if tg_op = 'INSERT' then change := annals.change_of(null, new, target, rules, ids, ignored, texts, later, refused); end if;
  if tg_op = 'UPDATE' then change := annals.change_of(old, new, target, rules, ids, ignored, texts, later, refused); end if;
  if tg_op = 'DELETE' then change := annals.change_of(old, null, target, rules, ids, ignored, texts, later, refused); end if;
  if change.id is null then return null; end if;
  -- A row whose id changes is two documents, each in its lane.
  parts := case when change.new_id <> change.id then 2 else 1 end;
  for part in 1 .. parts loop
    insert into annals.outbox (lane, at, transaction, source, before, after, document, actor, context, fault)
      values (annals.lane_of(source, case when part = 2 then change.new_id else change.id end), clock_timestamp(), pg_current_xact_id(),
              source, change.before, change.after, ${withWho(documentOfPart('parts = 2', 'change.document'), 'said')}, actor, context,
              change.fault);
  end loop;
  perform annals.count_changes(parts);
  return null;
end $annals$;

-- For all rows of a statement.
create or replace function annals.write_statement() returns trigger
language plpgsql ${triggerSettings} as $annals$
<<trigger>>
declare
${triggerArguments}
begin
${maskLater}
${writeStatements}
  perform annals.count_changes(written);
  return null;
end $annals$;

-- The first new row of such a table in a transaction says who made its changes. The relay looks for it in lane -1. The
-- arguments are the columns of the actor, of the actor's id, and of the name and the id of the person for whom.
create or replace function annals.take_actor() returns trigger
language plpgsql ${triggerSettings} as $annals$
declare
  refused constant text := ${foreignCast};
  parts constant text[] := array['actor', 'actorId', 'name', 'id'];
  value text;
  said jsonb := '{}';
begin
  if refused is not null or current_setting('annals.actor_taken', true) = pg_current_xact_id()::text then return null; end if;
  for place in 0 .. tg_nargs - 1 loop
    continue when tg_argv[place] = '';
    begin
      execute format('select left(to_jsonb(($1).%I) #>> ''{}'', 10000)', tg_argv[place]) into value using new;
      -- Half an id would be another one.
      if value <> '' and (place in (0, 2) or length(value) <= 1000) then
        said := said || jsonb_build_object(parts[place + 1], value);
      end if;
    exception when others then null;
    end;
  end loop;
  if said <> '{}' then
    perform set_config('annals.actor_taken', pg_current_xact_id()::text, true);
    insert into annals.outbox (lane, at, transaction, actor, document)
      values (${actorLane}, clock_timestamp(), pg_current_xact_id(), said ->> 'actor', said);
  end if;
  return null;
end $annals$;

-- Before a truncate: deletes each row. Virtual columns may fail and are not recorded.
create or replace function annals.write_truncate() returns trigger
language plpgsql ${triggerSettings} set row_security = off as $annals$
declare
${triggerArguments}
  fault text := refused;
begin
${maskLater}
  if fault is null then
    begin
      execute format($truncate$${writeTruncate}$truncate$, (
        select string_agg(case when a.attgenerated = 'v' then 'null' else format('q.%I', a.attname) end, ', ' order by a.attnum)
          from pg_attribute a where a.attrelid = target and a.attnum > 0 and not a.attisdropped), target)
        using source, target, rules, ids, ignored, texts, later, refused, actor, context, said;
      get diagnostics written = row_count;
      perform annals.count_changes(written);
      -- A snapshot older than the truncate's lock does not see all deleted rows.
      if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        fault := format('a truncate of %s above read committed: rows that were written after its snapshot are deleted without an entry', target);
      end if;
    exception when others then
      fault := case
        when row_security_active(tg_relid) then format('row-level security hides the rows of %s from ${ownerRole}: a truncate deleted them without '
          'entries. A superuser can change that: alter role ${ownerRole} bypassrls', target)
        else format('the rows of %s, which a truncate deleted, cannot be read (SQLSTATE %s)', target, sqlstate) end;
    end;
  end if;
  if fault is not null then
    insert into annals.outbox (lane, at, transaction, source, fault)
      values (annals.lane_of(source, ''), clock_timestamp(), pg_current_xact_id(), source, fault);
    perform annals.count_changes(1);
  end if;
  return null;
end $annals$;`;
