-- The models and users of these changes that get no row because their day is full: texts of kind, day and name. Null:
-- none. The caller holds the lock on the tenant's quota.
create function call_sum_others(of_tenant text, changes jsonb) returns text[] language plpgsql as $$
declare
  max_names constant integer := 1000;
  bys text[];
  days integer[];
  names text[];
  others text[];
begin
  -- The names without a row.
  select array_agg(w.by), array_agg(w.day), array_agg(w.name) into bys, days, names
    from (select distinct part.by, c.day, part.name
            from jsonb_to_recordset(changes) as c (day integer, model text, "user" text)
            cross join lateral (values ('model', c.model), ('user', c."user")) as part (by, name)
            where part.name is not null) as w
    where not exists (select from call_sum s
                        where s.tenant = of_tenant and s.by = w.by and s.day = w.day and s.name = w.name);
  if bys is not null then
    select array_agg(concat_ws(' ', n.by, n.day, n.name)) into others
      from (select w.by, w.day, w.name, row_number() over (partition by w.by, w.day order by w.name) as place
              from unnest(bys, days, names) as w (by, day, name)) as n
      join (select s.by, s.day, count(*) as names from call_sum s
              where s.tenant = of_tenant and s.by = any (bys) and s.day = any (days)
              group by s.by, s.day) as there using (by, day)
      where n.place > max_names - there.names;
  end if;
  return others;
end
$$;
