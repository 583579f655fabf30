-- Replaces the names and ids of a person in the dictionary of actors, where a row of `ids` and `behalf_ids` loses both
-- and one of `names` and `behalf_names` the name alone, and the names of recorders and the provider's identifiers. The
-- renamed actors count as registered now, by a transaction of the server that has the tenant, so that caches of names
-- read them again.
create function change_rename(of_tenant text, replacement text, names bigint[], ids bigint[], behalf_names bigint[],
                              behalf_ids bigint[], renamed bigint[], lookups uuid[], recorders bigint[])
returns void language plpgsql as $$
declare
  this_transaction constant xid8 := pg_current_xact_id();
  one bigint;
  unknown uuid;
begin
  for i in 1..cardinality(renamed) loop
    update change_actor a
      set name = case when a.actor = any (names || ids) then replacement else a.name end,
          actor_id = case when a.actor = any (ids) then replacement else a.actor_id end,
          behalf_name = case when a.behalf_name is not null and a.actor = any (behalf_names || behalf_ids)
                             then replacement else a.behalf_name end,
          behalf_id = case when a.actor = any (behalf_ids) then replacement else a.behalf_id end,
          lookup = lookups[i], registered = this_transaction
      where a.tenant = of_tenant and a.actor = renamed[i];
  end loop;
  foreach one in array recorders loop
    unknown := gen_random_uuid();
    update change_recorder r
      set name = case when r.name is not null then replacement end,
          subject = case when r.subject is not null then replacement end, lookup = unknown
      where r.tenant = of_tenant and r.recorder = one;
  end loop;
end
$$;
