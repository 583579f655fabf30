-- How many entries some keys of a selection have from a moment on, each up to an end of its own: read from the entries. Here
-- and in change_newest what is read for a key is fenced ("offset 0", "limit"): each key is a range of an index, and a plan
-- from when the tables were small must not go through all of what an import has brought since, once for each key. And it is
-- read in order, which only the index has whose range it is: while the tables are empty, to skip through another one seems
-- to cost the same.
create function change_direct(of_tenant text, actors bigint[], kinds bigint[], keys bigint[], ends bigint[], since bigint)
returns bigint language plpgsql stable as $$
begin
  if actors <> '{0}' and kinds = '{}' then
    return (
      select count(*) from unnest(keys, ends) as key (actor, before)
        cross join lateral (
          -- of any kind: the index alone tells
          select from change_entry one
            where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < key.before
            order by one.at, one.sequence offset 0
        ) as e);
  elsif actors <> '{0}' then
    return (
      select count(*) from unnest(keys, ends) as key (actor, before)
        cross join lateral (
          select from change_entry one
            where one.tenant = of_tenant and one.actor = key.actor and one.at >= since and one.at < key.before
              and one.kind = any (kinds)
            order by one.at, one.sequence offset 0
        ) as e);
  elsif kinds <> '{0}' then
    return (
      select count(*) from unnest(keys, ends) as key (kind, before)
        cross join lateral (
          select from change_entry one
            where one.tenant = of_tenant and one.kind = key.kind and one.at >= since and one.at < key.before
            order by one.at, one.sequence offset 0
        ) as e);
  end if;
  return (
    select count(*) from (
      select from change_entry one
        where one.tenant = of_tenant and one.at >= since and one.at < ends[1] order by one.at, one.sequence offset 0
    ) as e);
end
$$;
