-- Used by calls that began on these days: tokens, or else pico-USD. Calls of a client or a key also count towards the
-- clients that created it. On a day when a model has no sum of its own, all calls of such models count: rather too much
-- than too little. On a day when a user has none, the calls of keys that fix the user count; on others, the sum
-- includes them.
create function budget_spent(of_tenant text, by text, name text, in_tokens boolean, first integer, last integer)
returns numeric language plpgsql as $$
declare
  bys constant text[] := case by when 'client' then array['client', 'maker'] else array[by] end;
  spent numeric;
  others numeric := 0;
begin
  if by = 'user' then
    select coalesce(sum(d.amount), 0) into spent
      from (select max(case when in_tokens then s.input + s.output else s.cost end) as amount
              from call_sum s
              where s.tenant = of_tenant and s.by in ('user', 'key user') and s.name = budget_spent.name
                and s.day between first and last
              group by s.day) as d;
    return spent;
  end if;
  select coalesce(sum(case when in_tokens then s.input + s.output else s.cost end), 0) into spent
    from call_sum s
    where s.tenant = of_tenant and s.by = any (bys) and s.name = budget_spent.name and s.day between first and last;
  if by = 'model' then
    select coalesce(sum(case when in_tokens then s.input + s.output else s.cost end), 0) into others
      from call_sum s
      where s.tenant = of_tenant and s.by = 'other model' and s.name = '' and s.day between first and last
        and not exists (select from call_sum o
                          where o.tenant = of_tenant and o.by = 'model' and o.name = budget_spent.name
                            and o.day = s.day);
  end if;
  return spent + others;
end
$$;
