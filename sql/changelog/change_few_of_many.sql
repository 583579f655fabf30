-- The same for any number of keys: hashed, as in change_pending.
create function change_few_of_many(of_tenant text, actor_sets text[], kind_sets text[], since bigint, before bigint)
returns bigint language sql stable set enable_nestloop = off as $$
  with one as materialized (
    select e.kind, e.actor from change_entry e
      where e.tenant = of_tenant and e.at >= since and e.at < before order by e.at, e.sequence limit 1001
  ), asked as materialized (
    select * from change_selections(actor_sets, kind_sets)
  )
  select case when (select count(*) from one) <= 1000 then
           (select count(*) from one
              join (select unnest(asked.kinds) as kind from asked where asked.actors = '{0}') as wanted on wanted.kind = one.kind)
           + (select count(*) from one
                join (select unnest(asked.actors) as actor, asked.kinds from asked where asked.actors <> '{0}') as wanted
                  on wanted.actor = one.actor
                where wanted.kinds = '{}' or one.kind = any (wanted.kinds))
         end
$$;
