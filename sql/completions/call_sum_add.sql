-- Adds to the sums what records of calls that were written or deleted say (call_change). To be called once in a
-- transaction, as its last lock: it takes the rows of all calls of these days first, in order, and with them the right
-- to write the other rows of the days. A day has rows of so many models and of so many users at most; the calls of
-- others are summed together, so that a tenant that names a new user with each call does not fill the database. As rows
-- stay, all calls of a name on a day are in its own row, or all of them are with the others.
create function call_sum_add(of_tenant text, changes jsonb) returns void language plpgsql strict as $$
declare
  others text[];
begin
  if exists (
    select from jsonb_to_recordset(changes) as c (day integer, model text, "user" text)
      cross join lateral (values ('model', c.model), ('user', c."user")) as part (by, name)
      where part.name is not null
        and not exists (select from call_sum s where s.tenant = of_tenant and s.by = part.by and s.day = c.day
                                                 and s.name = part.name)) then
    -- Nobody else may give a name a row of these days meanwhile.
    insert into call_sum as so_far (tenant, by, day, name, calls, uncosted, input, output, cost)
      select distinct of_tenant, 'all', c.day, '', 0, 0, 0, 0, 0
        from jsonb_to_recordset(changes) as c (day integer)
        order by c.day
      on conflict (tenant, by, day, name) do update set calls = so_far.calls;
    others := call_sum_others(of_tenant, changes);
  end if;

  insert into call_sum as so_far (tenant, by, day, name, calls, uncosted, input, output, cost)
    select of_tenant, part.by, c.day, part.name, sum(c.sign),
           coalesce(sum(c.sign) filter (where c.cost is null), 0), sum(c.input), sum(c.output),
           coalesce(sum(c.cost), 0)
      from jsonb_to_recordset(changes) as c (
        sign integer, day integer, client text, maker text, agent text, model text, provider text, "user" text,
        input bigint, output bigint, cost numeric)
      cross join lateral (select coalesce(concat_ws(' ', 'model', c.day, c.model) = any (others), false) as model,
                                 coalesce(concat_ws(' ', 'user', c.day, c."user") = any (others), false) as "user") as o
      cross join lateral (values
        ('all', ''), ('client', c.client), ('maker', c.maker), ('agent', c.agent), ('provider', c.provider),
        (case when o.model then 'other model' else 'model' end, case when o.model then '' else c.model end),
        (case when o."user" then 'other user' else 'user' end, case when o."user" then '' else c."user" end)
      ) as part (by, name)
      where part.name is not null
      group by part.by, c.day, part.name
      order by part.by <> 'all', c.day, part.by, part.name
    on conflict (tenant, by, day, name) do update
      set calls = so_far.calls + excluded.calls, uncosted = so_far.uncosted + excluded.uncosted,
          input = so_far.input + excluded.input, output = so_far.output + excluded.output,
          cost = so_far.cost + excluded.cost;

  if exists (select from budget b where b.tenant = of_tenant) then
    insert into budget_due as so_far (tenant, changes) values (of_tenant, 1)
      on conflict (tenant) do update set changes = so_far.changes + 1;
  end if;
end
$$;
