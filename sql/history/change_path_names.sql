-- The path names of entity types that are like one of the texts, and all names that share a number with one; null
-- stands for any. A shared number does not identify the name of an entry. The row of the rest (entity '') is always
-- included; with `only_shared`, all others are names that share their number.
create function change_path_names(of_tenant text, entities text[], names_like text[], only_shared boolean)
returns table (number integer, entity text, name text, is_shared boolean)
language plpgsql stable as $$
#variable_conflict use_column
begin
  return query
    select p.number, p.entity, p.name, p.is_shared
      from (
        select distinct c.number, c.entity, c.name,
               min(c.name) over (partition by c.number) <> max(c.name) over (partition by c.number) as is_shared
          from change_path c
          where c.tenant = of_tenant and (entities is null or c.entity = any (entities) or c.entity = '')
            and (names_like is null or c.entity = '' or c.number in (
              select o.number from change_path o where o.tenant = of_tenant and o.name like any (names_like)))
      ) as p
      where not only_shared or p.is_shared or p.entity = '';
end
$$;
