-- How many entries some selections (see change_count), of which no two share an entry, have in [since, before);
-- without an end where `before` is null. Selection i has actor_sets[i] and kind_sets[i]: arrays written as texts,
-- because an array of arrays could not have them of unlike lengths.
create function change_total(of_tenant text, actor_sets text[], kind_sets text[], since bigint,
  before bigint) returns bigint
language plpgsql stable as $$
declare
  total bigint := 0;
begin
  for i in 1..cardinality(actor_sets) loop
    total := total + coalesce((
      select sum(c.entries)
        from change_count(of_tenant, actor_sets[i]::bigint[], kind_sets[i]::bigint[], array[since], before, '') as c
    ), 0);
  end loop;
  return total;
end
$$;
