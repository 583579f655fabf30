-- Adds tokens to what the tenant has used on these days (days since 1970). A correction may be negative. The order is
-- that of every writer of these rows, so none waits for another in a circle.
create function usage_add_tokens(of_tenant text, days integer[], inputs bigint[], outputs bigint[]) returns void
language plpgsql as $$
begin
  insert into usage_count as so_far (tenant, day, measure, amount)
    select of_tenant, used.day, part.measure, sum(part.tokens)
      from unnest(days, inputs, outputs) as used (day, input, output)
      cross join lateral (values ('inputTokens', used.input), ('outputTokens', used.output)) as part (measure, tokens)
      group by used.day, part.measure
      order by used.day, part.measure
    on conflict (tenant, day, measure) do update set amount = so_far.amount + excluded.amount;
end
$$;
