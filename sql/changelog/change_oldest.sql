-- The time of the oldest entry of a selection (see change_rank) in [since, before), without an end where `before` is null; null: there is
-- none. Each key is a range of an index. Of actors the selection has any kind: among their entries one of a kind may be hard to find.
create function change_oldest(of_tenant text, actors bigint[], kinds bigint[], since bigint, before bigint) returns bigint
language plpgsql stable
-- see change_read
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  last_moment constant bigint := coalesce(before, 9223372036854775807);
begin
  if actors <> '{0}' then
    return (
      select min(e.at) from unnest(actors) as key (actor)
        cross join lateral (
          select one.at from change_entry one
            where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < last_moment
            order by one.at, one.sequence limit 1
        ) as e);
  elsif kinds <> '{0}' then
    return (
      select min(e.at) from unnest(kinds) as key (kind)
        cross join lateral (
          select one.at from change_entry one
            where one.tenant = of_tenant and one.kind = key.kind and one.at >= since and one.at < last_moment
            order by one.at, one.sequence limit 1
        ) as e);
  end if;
  return (
    select e.at from (
      select one.at from change_entry one
        where one.tenant = of_tenant and one.at >= since and one.at < last_moment
        order by one.at, one.sequence limit 1
    ) as e);
end
$$;
