-- What each user has spent and reserved in these days, as budget_spent and budget_held: tokens, or else pico-USD. ''
-- stands for the calls without a user. `fixed_only`: only users that keys fix.
create function budget_users(of_tenant text, in_tokens boolean, first integer, last integer, fixed_only boolean)
returns table (name text, spent numeric, held numeric) language plpgsql as $$
begin
  return query
    with used as (
      select s.by, s.day, s.name, case when in_tokens then s.input + s.output else s.cost end as amount
        from call_sum s
        where s.tenant = of_tenant and s.by in ('all', 'user', 'other user', 'key user')
          and s.day between first and last
    ), fixed as (
      select distinct u.name from used u where u.by = 'key user'
    ), part as (
      select u.name, max(u.amount) as spent, 0::numeric as held
        from used u where u.by in ('user', 'key user')
        group by u.name, u.day
      union all
      select '', case when u.by = 'all' then u.amount else -u.amount end, 0
        from used u where u.by <> 'key user'
      union all
      select case when (r.call ->> 'user_fixed') is distinct from 'false' then coalesce(r.call ->> 'end_user', '')
                  else '' end, 0, case when in_tokens then r.input + r.output else r.cost end
        from completion_reservation r
        where r.tenant = of_tenant and not r.charged and r.call is not null
          and usage_day((r.call ->> 'at')::timestamptz) between first and last
    )
    select p.name, coalesce(sum(p.spent), 0), coalesce(sum(p.held), 0)
      from part p
      where not fixed_only or p.name in (select f.name from fixed f)
      group by p.name;
end
$$;
