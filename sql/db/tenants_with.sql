-- The tenants that have rows in a table for which an SQL condition is true. The condition is the program's own text.
create function tenants_with(of_table text, condition text) returns setof text language plpgsql as $$
begin
  if condition <> 'true' then
    return query execute format('select distinct t.tenant::text from %I t where %s order by 1', of_table, condition);
    return;
  end if;
  -- Of each tenant the first row alone is read, however many rows it has.
  return query execute format(
    'with recursive found (tenant) as (
       (select t.tenant from %1$I t order by t.tenant limit 1)
       union all
       select (select t.tenant from %1$I t where t.tenant > f.tenant order by t.tenant limit 1) from found f where f.tenant is not null
     )
     select f.tenant::text from found f where f.tenant is not null', of_table);
end
$$;
