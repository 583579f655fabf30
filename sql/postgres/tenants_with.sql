-- For each question, by its number from 1, the tenants that have rows in its table for which its SQL condition is true.
create function tenants_with(of_tables text[], conditions text[]) returns table (question integer, tenant text)
language sql as $$
  select q.number::integer, found.tenant
    from unnest(of_tables, conditions) with ordinality as q (of_table, condition, number)
    cross join lateral tenants_in(q.of_table::regclass, q.condition) as found (tenant)
$$;
