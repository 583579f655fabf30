-- Replaces an actor's name, those of recorders, and the provider's identifiers. The actor counts as registered now, by
-- a transaction of the server that has the tenant, so that caches of names read it again.
create function change_rename(of_tenant text, old_lookup uuid, new_lookup uuid, replacement text, recorders bigint[])
returns void language plpgsql as $$
declare
  this_transaction constant xid8 := pg_current_xact_id();
  one bigint;
  unknown uuid;
begin
  update change_actor a set name = replacement, lookup = new_lookup, registered = this_transaction
    where a.tenant = of_tenant and a.lookup = old_lookup;
  foreach one in array recorders loop
    unknown := gen_random_uuid();
    update change_recorder r
      set name = case when r.name is not null then replacement end,
          subject = case when r.subject is not null then replacement end, lookup = unknown
      where r.tenant = of_tenant and r.recorder = one;
  end loop;
end
$$;
