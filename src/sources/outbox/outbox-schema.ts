/** Owns the outbox and its functions. Cannot log in. */
export const ownerRole = 'annals_outbox';
/** Reads and empties the outbox. The relay's login is a member. */
const relayRole = 'annals_relay';

// Every role may read the catalog.
const parts = `
with ours (schema, owner, relay) as (
  select oid, to_regrole('${ownerRole}')::oid, to_regrole('${relayRole}')::oid from pg_namespace where nspname = 'annals'
), objects (class, oid, name, owner) as (
  select 'pg_namespace'::regclass, oid, 'schema ' || nspname, nspowner from pg_namespace where oid in (select schema from ours)
  union all
  select 'pg_class'::regclass, c.oid, 'table annals.' || relname, relowner
    from pg_class c where relnamespace in (select schema from ours) and relkind not in ('i', 'I', 'S')
  union all
  select 'pg_proc'::regclass, oid, 'function annals.' || proname, proowner from pg_proc where pronamespace in (select schema from ours)
  union all
  select 'pg_type'::regclass, oid, 'type annals.' || typname, typowner from pg_type where typnamespace in (select schema from ours)
), foreign_owners (fault) as (
  select format('the %s belongs to %s', objects.name, pg_get_userbyid(objects.owner))
    from objects, ours where objects.owner is distinct from ours.owner
)`;

// Usage of the schema and annals.record may be granted to anybody.
const rights = `, granted (name, grantee, privilege, allowed) as (
  select 'schema annals', grantee, privilege_type, case when privilege_type = 'USAGE' then grantee end
    from pg_namespace n, aclexplode(coalesce(nspacl, acldefault('n', nspowner))) where n.oid in (select schema from ours)
  union all
  select 'table annals.' || relname, grantee, privilege_type,
         case when (relname, privilege_type) in (('outbox', 'SELECT'), ('outbox', 'DELETE'), ('installation', 'SELECT'),
                                                 ('lane', 'SELECT'), ('lane', 'UPDATE')) then relay end
    from ours join pg_class c on c.relnamespace = schema, aclexplode(coalesce(relacl, acldefault('r', relowner)))
   where relkind not in ('i', 'I', 'S')
  union all
  select format('column %s of annals.%s', attname, relname), grantee, privilege_type, null
    from ours join pg_class c on c.relnamespace = schema join pg_attribute a on a.attrelid = c.oid, aclexplode(a.attacl)
  union all
  select 'function annals.' || proname, grantee, privilege_type,
         case proname when 'record' then grantee when 'writes_by_row' then relay end
    from ours join pg_proc on pronamespace = schema, aclexplode(coalesce(proacl, acldefault('f', proowner)))
), foreign_rights (fault) as (
  select format('%s has the right %s on the %s', case grantee when 0 then 'public' else pg_get_userbyid(grantee) end,
                lower(privilege), granted.name)
    from granted, ours where grantee <> ours.owner and grantee is distinct from allowed
  union all
  select format('the trigger %s is on annals.%s', tgname, relname)
    from ours join pg_class c on c.relnamespace = schema join pg_trigger t on t.tgrelid = c.oid where not tgisinternal
  union all
  select format('the rule %s is on annals.%s', rulename, relname)
    from ours join pg_class c on c.relnamespace = schema join pg_rewrite r on r.ev_class = c.oid
  union all
  select 'the role ${ownerRole} may log in' from pg_roles where rolname = '${ownerRole}' and rolcanlogin
)`;

// Superusers, the database owner and the role that runs the SQL may read what is captured anyway.
const members = `
  select format('%s is a member of ${ownerRole}', pg_get_userbyid(m.member))
    from pg_auth_members m join pg_roles r on r.oid = m.member join pg_database d on d.datname = current_database()
   where m.roleid = to_regrole('${ownerRole}') and not r.rolsuper and m.member <> d.datdba
     and r.rolname not in (current_user, session_user)`;

/** Objects in the schema with another owner, one row each. */
const foreignOwners = `${parts} select fault from foreign_owners`;

/** Also rights that the outbox's SQL does not grant, by which others could read or write what is captured. */
export const schemaFaults = `${parts}${rights} select fault from foreign_owners union all select fault from foreign_rights`;

/** Raises an exception unless the schema is only ours. */
export const refuseForeignSchema = refusalOf(`${schemaFaults} union all ${members}`);

/** Raises an exception if others own the schema or an object in it. */
const refuseForeignOwners = refusalOf(foreignOwners);

function refusalOf(faults: string): string {
  return `do $annals$
declare
  faults constant text := (select string_agg(fault, '; ' order by fault) from (${faults}) as found (fault));
begin
  if faults is not null then
    raise exception 'the schema annals is not that of the outbox of Annals alone: %', faults
      using hint = 'Take these rights away, or drop or rename what another program has made.';
  end if;
end $annals$;`;
}

/** The number of lanes, numbered from 0, among which documents are divided. */
export const lanes = 16;

/** The lane of rows that only say who made their transaction. Not relayed by itself. */
export const actorLane = -1;

/** The lane of rows that only say that their transaction, which is their number, has several changes. */
export const groupLane = -2;

/**
 * The first statement, which looks up no name itself. The session's path may lead to functions of others, and whoever
 * runs the SQL has more rights than they.
 */
export const fixSearchPath = 'set local search_path = pg_catalog, pg_temp;';

/** Roles and schema. */
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
      -- Another database of the server is getting its outbox concurrently.
    end;
  end loop;
  if not pg_has_role(current_user, '${ownerRole}', 'member') then grant ${ownerRole} to current_user; end if;
end $annals$;
create schema if not exists annals authorization ${ownerRole};
comment on schema annals is 'Annals outbox';`;

/** Tables, created by the owner. */
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
  -- a table as in the mapping, or null for annals.record
  source text,
  before jsonb,
  after jsonb,
  -- of annals.record: tenant, entity, entityId, name; of a row whose id changed: part (1 delete, 2 create); of a row with
  -- columns newer than this SQL: masked; of a row that could not be written: key; of any: who, as the application says
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
grant select, update on annals.lane to ${relayRole};`;

/** Rights that the owner of the tables needs to create the triggers. */
export const usedOnce =
  'annals.writes_by_row(regclass), annals.write_row(), annals.write_statement(), annals.write_truncate(), annals.take_actor()';

/** Only triggers may call the functions, and annals.record if granted. */
export const revokeFunctions = `revoke all on all functions in schema annals from public;
grant usage on schema annals to session_user;
grant execute on function ${usedOnce} to session_user;
grant execute on function annals.writes_by_row(regclass) to ${relayRole};
reset role;`;

/** Removes the outbox. Fails while it has changes. */
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
  select count(*) into waiting from annals.outbox where lane >= 0;
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
