-- The tenants that have rows in a table, or in a shard of it, for which an SQL condition is true. The condition is the
-- program's own text.
create function tenants_in(of_table regclass, condition text) returns setof text language plpgsql as $$
begin
  if condition <> 'true' then
    return query execute format('select distinct t.tenant::text from %s t where %s', of_table, condition);
    return;
  end if;
  -- Of each tenant the first row alone is read, however many rows it has.
  return query execute format(
    'with recursive found (tenant) as (
       (select t.tenant from %1$s t order by t.tenant limit 1)
       union all
       select (select t.tenant from %1$s t where t.tenant > f.tenant order by t.tenant limit 1) from found f
         where f.tenant is not null
     )
     select f.tenant::text from found f where f.tenant is not null', of_table);
end
$$;
