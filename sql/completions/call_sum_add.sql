-- Adds the changes of call records (call_change) to the totals and to the tenant's used tokens. The caller holds the
-- lock on the tenant's quota. The rows per day are limited for models and users; other calls are summed together, so
-- that new user names on each call do not fill the database. Rows stay, so all calls of a name on a day are in one
-- place. Users that keys fix have rows of their own in addition, as many as there are such keys.
create function call_sum_add(of_tenant text, changes jsonb) returns void language plpgsql strict as $$
declare
  others constant text[] := call_sum_others(of_tenant, changes);
begin
  insert into call_sum as so_far (tenant, by, day, name, calls, uncosted, input, output, cost)
    select of_tenant, part.by, c.day, part.name, sum(c.sign),
           coalesce(sum(c.sign) filter (where c.cost is null), 0), sum(c.input), sum(c.output),
           coalesce(sum(c.cost), 0)
      from jsonb_to_recordset(changes) as c (
        sign integer, day integer, client text, maker text, agent text, model text, provider text, "user" text,
        "key user" text, input bigint, output bigint, cost numeric)
      cross join lateral (select coalesce(concat_ws(' ', 'model', c.day, c.model) = any (others), false) as model,
                                 coalesce(concat_ws(' ', 'user', c.day, c."user") = any (others), false) as "user") as o
      cross join lateral (
        values ('all', ''), ('client', c.client), ('agent', c.agent), ('provider', c.provider),
        ('key user', c."key user"),
        (case when o.model then 'other model' else 'model' end, case when o.model then '' else c.model end),
        (case when o."user" then 'other user' else 'user' end, case when o."user" then '' else c."user" end)
        union all select 'maker', maker from unnest(string_to_array(c.maker, ' ')) as maker
      ) as part (by, name)
      where part.name is not null
      group by part.by, c.day, part.name
    on conflict (tenant, by, day, name) do update
      set calls = so_far.calls + excluded.calls, uncosted = so_far.uncosted + excluded.uncosted,
          input = so_far.input + excluded.input, output = so_far.output + excluded.output,
          cost = so_far.cost + excluded.cost;

  insert into usage_count as so_far (tenant, day, measure, amount)
    select of_tenant, c.day, part.measure, sum(part.tokens)
      from jsonb_to_recordset(changes) as c (day integer, input bigint, output bigint)
      cross join lateral (values ('inputTokens', c.input), ('outputTokens', c.output)) as part (measure, tokens)
      group by c.day, part.measure
    on conflict (tenant, day, measure) do update set amount = so_far.amount + excluded.amount;

  if exists (select from budget b where b.tenant = of_tenant) then
    insert into budget_due as so_far (tenant, changes) values (of_tenant, 1)
      on conflict (tenant) do update set changes = so_far.changes + 1;
  end if;
end
$$;
