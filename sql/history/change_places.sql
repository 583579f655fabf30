-- The places of entries of one selection in [since, before): the newest `most` of each key, which include the newest
-- `most` of all, in any order.
create function change_places(of_tenant text, actors bigint[], kinds bigint[], since bigint, before bigint, most bigint,
                              out ats bigint[], out sequences bigint[])
language plpgsql stable as $$
begin
  if actors = '{0}' and kinds = '{0}' then
    select array_agg(e.at), array_agg(e.sequence) into ats, sequences
      from (
        select one.at, one.sequence from change_entry one
          where one.tenant = of_tenant and one.at >= since and one.at < before
          order by one.at desc, one.sequence desc limit most
      ) as e;
    return;
  elsif actors = '{0}' then
    select array_agg(e.at), array_agg(e.sequence) into ats, sequences
      from unnest(kinds) as key (kind)
      cross join lateral (
        select one.at, one.sequence from change_entry one
          where one.tenant = of_tenant and one.kind = key.kind and one.at >= since and one.at < before
          order by one.at desc, one.sequence desc limit most
      ) as e;
    return;
  elsif cardinality(actors) > 128 then
    -- so many actors are likely to have enough of the tenant's newest entries: these are looked up in a hash
    select array_agg(e.at), array_agg(e.sequence) into ats, sequences
      from (
        select along.at, along.sequence
          from (
            select one.at, one.sequence, one.actor, one.kind from change_entry one
              where one.tenant = of_tenant and one.at >= since and one.at < before
              order by one.at desc, one.sequence desc limit 8 * cardinality(actors)
          ) as along
          where case when along.actor in (select unnest(actors)) then kinds = '{}' or along.kind = any (kinds) end
          limit most
      ) as e;
    if cardinality(ats) = most then
      return;
    end if;
  end if;
  select array_agg(e.at), array_agg(e.sequence) into ats, sequences
    from unnest(actors) as key (actor)
    cross join lateral (
      select one.at, one.sequence from change_entry one
        where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < before
          and (kinds = '{}' or one.kind = any (kinds))
        order by one.at desc, one.sequence desc limit most
    ) as e;
end
$$;
