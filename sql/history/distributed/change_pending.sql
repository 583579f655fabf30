-- change_pending of one server, in PL/pgSQL: see change_snapshot.
create function change_pending(of_tenant text, of_actors bigint[], of_kinds bigint[])
returns table (at bigint, key bigint) language plpgsql stable as $$
begin
  return query
    select p.at, case when of_actors <> '{0}' then p.actor when of_kinds <> '{0}' then p.kind else 0 end
      from change_delta d
      cross join lateral unnest(d.ats, d.kinds, d.actors) as p (at, kind, actor)
      where d.tenant = of_tenant
        and (of_actors = '{0}' or p.actor in (select unnest(of_actors)))
        and (of_kinds in ('{}', '{0}') or p.kind in (select unnest(of_kinds)));
end
$$;
