-- What the tenant's budgets decide for a call with these max. tokens; `call`: the start of its record. 'free': none
-- applies. 'reserved': each has room. 'wait': one has room once others have settled. 'over': one has not; `rest` is
-- what it has left, `bound` what the call needs. 'unpriced', 'unbounded': the model has no price, or its input no known
-- bound. The caller holds the lock on the tenant's quota.
create function budget_decide(of_tenant text, call jsonb, is_bounded boolean, input bigint, output bigint,
                              out outcome text, out budget text, out bound text, out rest text)
language plpgsql as $$
declare
  day constant integer := usage_day((call ->> 'at')::timestamptz);
  cost constant numeric := call_bound(call -> 'price', input, output);
  -- Not a record: texts of a record keep the collation of their column, and a called routine takes it on for the
  -- name of its tenant. A cluster takes that for another tenant.
  one_id text;
  one_by text;
  one_name text;
  first integer;
  last integer;
  in_tokens boolean;
  allowed numeric;
  needed numeric;
  free numeric;
begin
  outcome := 'free';
  for one_id, one_by, one_name, first, last, in_tokens, allowed in
    select b.id, case b.by when 'each user' then 'user' else b.by end,
           case b.by when 'each user' then call ->> 'end_user' else b.name end, d.first, d.last,
           b.limit_tokens is not null, coalesce(b.limit_tokens, b.limit_cost)
      from budget b
      cross join budget_days(b.period, day) as d
      where b.tenant = of_tenant and budget_limits(b.by, b.name, call)
      order by b.id
  loop
    if outcome <> 'wait' then
      budget := one_id;
    end if;
    needed := case when in_tokens then input + output else cost end;
    if not is_bounded or needed is null then
      budget := one_id;
      outcome := case when is_bounded then 'unpriced' else 'unbounded' end;
      return;
    end if;
    free := allowed - budget_spent(of_tenant, one_by, one_name, in_tokens, first, last);
    if needed > free then
      budget := one_id;
      outcome := 'over';
      bound := budget_amount(needed, in_tokens);
      rest := budget_amount(greatest(free, 0), in_tokens);
      return;
    end if;
    if outcome <> 'wait' then
      outcome := case
        when needed > free - budget_held(of_tenant, one_by, one_name, in_tokens, first, last) then 'wait'
        else 'reserved' end;
    end if;
  end loop;
end
$$;
