-- Registers names of paths. In: their numbers, entity types and names, each name once, and the shared number `rest`.
-- Out: the numbers of the names without room. Entries get `rest` in their place, which bounds what a tenant with very
-- many names takes. Each lookup is one step in the index of numbers.
create function path_register(
  of_tenant text, numbers integer[], entities text[], names text[], rest integer
) returns integer[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  -- names per tenant, since a regular expression on paths is tried on all of them
  max_names constant integer := 10000;
  missing integer[];
  room integer;
  left_over integer[];
begin
  -- not "where not exists", which a cluster refuses beside a list
  select array_agg(w.i order by w.i) into missing
    from generate_series(1, cardinality(numbers)) as w (i)
    left join lateral (
      select count(*) as registered from change_path p
        where p.tenant = of_tenant and p.number = numbers[w.i] and p.entity = entities[w.i] and p.name = names[w.i]
    ) as known on true
    where known.registered = 0;
  if missing is null then
    return '{}';
  end if;
  room := greatest(0, max_names - (select count(*) from change_path p where p.tenant = of_tenant));
  insert into change_path (tenant, path, number, entity, name)
    select of_tenant, gen_random_uuid(), numbers[m.i], entities[m.i], names[m.i] from unnest(missing[1:room]) as m (i);
  left_over := missing[room + 1:];
  if left_over <> '{}' and not exists (
    select from change_path p where p.tenant = of_tenant and p.number = rest and p.entity = '') then
    insert into change_path (tenant, path, number, entity, name) values (of_tenant, gen_random_uuid(), rest, '', '');
  end if;
  return array(select numbers[m.i] from unnest(left_over) as m (i));
end
$$;
