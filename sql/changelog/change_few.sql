-- How many entries of the selections are in [since, before); null where that is to be counted otherwise, because there are
-- more than 1,000 entries of whatever selection.
create function change_few(of_tenant text, actor_sets text[], kind_sets text[], since bigint, before bigint)
returns bigint language plpgsql stable as $$
declare
  actors constant bigint[] := actor_sets[1]::bigint[];
  kinds constant bigint[] := kind_sets[1]::bigint[];
begin
  if cardinality(actor_sets) > 1 or cardinality(actors) + cardinality(kinds) > 64 then
    return change_few_of_many(of_tenant, actor_sets, kind_sets, since, before);
  end if;
  return (
    select case when count(*) <= 1000 then
             count(*) filter (where (actors = '{0}' or one.actor = any (actors)) and (kinds in ('{}', '{0}') or one.kind = any (kinds)))
           end
      from (
        select e.kind, e.actor from change_entry e
          where e.tenant = of_tenant and e.at >= since and e.at < before
        order by e.at, e.sequence limit 1001
      ) as one
  );
end
$$;
