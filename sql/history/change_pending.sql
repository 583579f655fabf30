-- The entries of a selection that wait to be folded, with the key that each belongs to: its actor in a selection by actors,
-- its kind in one by kinds, 0 in that of all entries. Hashed, whatever the planner makes of lengths that it cannot know:
-- while an import runs, entries times keys would be hundreds of millions of pairs.
create function change_pending(of_tenant text, of_actors bigint[], of_kinds bigint[])
returns table (at bigint, key bigint) language sql stable as $$
  select p.at, case when of_actors <> '{0}' then p.actor when of_kinds <> '{0}' then p.kind else 0 end
    from change_delta d
    cross join lateral unnest(d.ats, d.kinds, d.actors) as p (at, kind, actor)
    where d.tenant = of_tenant
      and (of_actors = '{0}' or p.actor in (select unnest(of_actors)))
      and (of_kinds in ('{}', '{0}') or p.kind in (select unnest(of_kinds)))
$$;
