-- Which entries wait to be folded, with the key that each belongs to. Hashed, whatever the planner makes of lengths it
-- cannot know: while an import runs, entries times keys would be hundreds of millions of pairs.
create function change_pending(of_tenant text, actor_sets text[], kind_sets text[])
returns table (at bigint, place integer, actor bigint, kind bigint) language plpgsql stable set enable_nestloop = off as $$
begin
  return query
    with pending as materialized (
      select one.at, one.kind, one.actor
        from change_delta d
        cross join lateral unnest(d.ats, d.kinds, d.actors) as one (at, kind, actor)
        where d.tenant = of_tenant
    ), asked as materialized (
      select * from change_selections(actor_sets, kind_sets)
    )
    select p.at, wanted.place, 0::bigint, wanted.kind
      from pending p
      join (select asked.place, unnest(asked.kinds) as kind from asked where asked.actors = '{0}') as wanted on wanted.kind = p.kind
    union all
    select p.at, asked.place, 0::bigint, 0::bigint
      from pending p cross join asked where asked.actors = '{0}' and asked.kinds = '{0}'
    union all
    select p.at, wanted.place, wanted.actor, 0::bigint
      from pending p
      join (select asked.place, asked.kinds, unnest(asked.actors) as actor from asked where asked.actors <> '{0}') as wanted
        on wanted.actor = p.actor
      where wanted.kinds = '{}' or p.kind = any (wanted.kinds);
end
$$;
