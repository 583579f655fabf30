import { actorLane, lanes } from './lanes.ts';
import { ownerRole, refuseForeignOwners, refuseForeignSchema, relayRole } from './schema-faults.ts';

/**
 * The first statement of the SQL, which looks up no name itself. The session's path may lead to functions and operators of others, and who
 * runs the SQL may do more than they.
 */
export const fixSearchPath = 'set local search_path = pg_catalog, pg_temp;';

/** Roles and schema. Refuses a schema of the same name that is not ours alone. */
export const createSchema = `${refuseForeignSchema}
do $annals$
declare
  name text;
begin
  if current_setting('server_version_num')::int < 140000 then
    raise exception 'the outbox needs PostgreSQL 14 or later';
  end if;
  foreach name in array array['${ownerRole}', '${relayRole}'] loop
    begin
      if to_regrole(name) is null then execute format('create role %I nologin', name); end if;
    exception when duplicate_object or unique_violation then
      -- Another database of the server gets its outbox at the same time.
    end;
  end loop;
  if not pg_has_role(current_user, '${ownerRole}', 'member') then grant ${ownerRole} to current_user; end if;
end $annals$;
create schema if not exists annals authorization ${ownerRole};
comment on schema annals is 'Annals outbox';`;

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
  -- of a change that was written by hand: tenant, entity, entityId, name; of a row that got another id: part 1 is its delete, 2 its create;
  -- of a row with columns that came after this SQL ran: masked; of a row that could not be written: key
  document jsonb,
  actor text,
  context text,
  -- why a row could not be written: then it has no sides
  fault text,
  primary key (lane, number)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000);
revoke all on all tables in schema annals from public;
revoke all on schema annals from public;
grant usage on schema annals to ${relayRole};
grant select, delete on annals.outbox to ${relayRole};
grant select on annals.installation to ${relayRole};
grant select, update on annals.lane to ${relayRole};`;

/** What the owner of the tables needs while it makes the triggers. */
export const usedOnce =
  'annals.writes_by_row(regclass), annals.write_row(), annals.write_statement(), annals.write_truncate(), annals.take_actor()';

/** Only triggers may call the functions, except annals.record where the operator grants it. */
export const revokeFunctions = `revoke all on all functions in schema annals from public;
grant usage on schema annals to session_user;
grant execute on function ${usedOnce} to session_user;
grant execute on function annals.writes_by_row(regclass) to ${relayRole};
reset role;`;

/** Removes everything that the SQL has made. Fails while changes wait in the outbox. */
export const removeOutbox = `begin;
${fixSearchPath}
set local lock_timeout = '5s';
${refuseForeignOwners}
do $annals$
declare
  found record;
  waiting bigint;
begin
  if to_regnamespace('annals') is null then
    raise notice 'there is no outbox';
    return;
  end if;
  for found in
    select t.tgname, t.tgrelid::regclass as target
      from pg_trigger t join pg_proc p on p.oid = t.tgfoid
     where p.pronamespace = to_regnamespace('annals') and t.tgparentid = 0
  loop
    execute format('drop trigger %I on %s', found.tgname, found.target);
  end loop;
  set local role ${ownerRole};
  select count(*) into waiting from annals.outbox where lane <> ${actorLane};
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
