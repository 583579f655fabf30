/** The role that owns the outbox and its functions. It cannot log in. */
export const ownerRole = 'annals_outbox';
/** The role that reads and empties the outbox. The relay's login is a member of it. */
export const relayRole = 'annals_relay';

// The catalogue of a database shows it to every role.
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

// Usage of the schema, and annals.record, may be granted to anybody.
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

// A superuser, who owns the database and who runs the SQL need no membership to read what is captured.
const members = `
  select format('%s is a member of ${ownerRole}', pg_get_userbyid(m.member))
    from pg_auth_members m join pg_roles r on r.oid = m.member join pg_database d on d.datname = current_database()
   where m.roleid = to_regrole('${ownerRole}') and not r.rolsuper and m.member <> d.datdba
     and r.rolname not in (current_user, session_user)`;

/** What belongs to somebody else of the schema, in words; no row where all of it is ours. */
const foreignOwners = `${parts} select fault from foreign_owners`;

/** The same with rights that the SQL of the outbox does not give, by which others could read or write what is captured. */
export const schemaFaults = `${parts}${rights} select fault from foreign_owners union all select fault from foreign_rights`;

/** Raises an exception in the SQL of the outbox where the schema is not ours alone. */
export const refuseForeignSchema = refusalOf(`${schemaFaults} union all ${members}`);

/** Raises an exception where others own the schema or something in it. */
export const refuseForeignOwners = refusalOf(foreignOwners);

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
