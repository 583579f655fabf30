-- Settles calls and reserves others, in this order and in one transaction, so that a process sends one batch of a
-- tenant at a time, however many calls it has. `calls` has the records of settled reservations. A settled reservation
-- is replaced by what was used, null being what was reserved; one that is not there any more was settled before.
-- Returns a row for each of `wanted`, in order: none that has to wait for the quota is overtaken. Calls with the
-- shared token reserve of the quota and of budgets, those with own keys of budgets alone: 'free' where none applies,
-- and then they reserve nothing. Nothing is locked or written where nothing changes, so that those who wait may ask
-- often. Sums are added later (call_sum_records), at the latest before budgets read them here.
create function completion_quota_apply(of_tenant text,
                                       settled uuid[], input_tokens bigint[], output_tokens bigint[],
                                       wanted uuid[], input_bounds bigint[], output_caps bigint[], lease interval,
                                       least_output bigint, input_limit bigint, output_limit bigint,
                                       calls jsonb, begun jsonb[], bounded boolean[])
returns table (outcome text, granted bigint, budget text, bound text, rest text) language plpgsql as $$
declare
  quota completion_quota;
  waits boolean := false;
  changed boolean := false;
  moment constant timestamptz := clock_timestamp();
  corrected text[];
  settled_calls jsonb;
  has_budgets boolean;
begin
  select * into quota from completion_quota q where q.tenant = of_tenant;
  if not found then
    insert into completion_quota (tenant) values (of_tenant) on conflict do nothing;
  elsif cardinality(settled) = 0
    and not exists (select from completion_reservation r
                      where r.tenant = of_tenant and not r.charged and r.expires_at <= moment)
    and not exists (select from unnest(input_bounds, output_caps) as want (bound, cap)
                      cross join completion_quota_decide(quota, want.bound, want.cap, least_output,
                                                         input_limit, output_limit) as decided
                      where decided.outcome = 'reserved')
    and not exists (select from unnest(begun) as want (call) where not call_reserves_quota(want.call))
  then
    return query
      select decided.outcome, decided.granted, null, null, null
        from unnest(input_bounds, output_caps) with ordinality as want (bound, cap, place)
        cross join completion_quota_decide(quota, want.bound, want.cap, least_output,
                                           input_limit, output_limit) as decided
        order by want.place;
    return;
  end if;

  select * into quota from completion_quota q where q.tenant = of_tenant for update;
  -- Checked first to skip needless work: every call runs this twice, to reserve and to settle.
  if exists (select from completion_reservation r
               where r.tenant = of_tenant and not r.charged and r.expires_at <= moment)
  then
    perform call_record_write(of_tenant, completion_quota_charge_expired(of_tenant));
    select * into quota from completion_quota q where q.tenant = of_tenant;
  end if;

  if cardinality(settled) > 0 then
    with gone as (
      delete from completion_reservation r
        using unnest(settled, input_tokens, output_tokens) as used (reservation, input, output)
        where r.tenant = of_tenant and r.reservation = used.reservation
        returning r.reservation, r.input, r.output, r.charged, call_reserves_quota(r.call) as of_quota,
                  case when used.input is null or used.output is null then r.cost end as cost_bound,
                  coalesce(used.input, r.input) as input_total, coalesce(used.output, r.output) as output_total,
                  coalesce(used.input, r.input) - case when r.charged then r.input else 0 end as input_added,
                  coalesce(used.output, r.output) - case when r.charged then r.output else 0 end as output_added
    )
    select quota.input_used + coalesce(sum(input_added) filter (where of_quota), 0),
           quota.output_used + coalesce(sum(output_added) filter (where of_quota), 0),
           quota.input_reserved - coalesce(sum(input) filter (where of_quota and not charged), 0),
           quota.output_reserved - coalesce(sum(output) filter (where of_quota and not charged), 0),
           array_agg(reservation::text) filter (where charged),
           jsonb_agg(ended.call || jsonb_build_object('input_tokens', input_total, 'output_tokens', output_total,
                                                     'cost_bound', cost_bound))
             filter (where ended.call is not null)
      into quota.input_used, quota.output_used, quota.input_reserved, quota.output_reserved,
           corrected, settled_calls
      from gone left join jsonb_array_elements(calls) as ended (call) on ended.call ->> 'id' = gone.reservation::text;
    if corrected is not null then
      perform call_sum_add(of_tenant, call_record_take(of_tenant, corrected));
    end if;
    perform call_record_write(of_tenant, settled_calls);
    changed := true;
  end if;
  has_budgets := cardinality(wanted) > 0 and exists (select from budget b where b.tenant = of_tenant);
  if has_budgets then
    perform call_sum_records(of_tenant);
  end if;

  for i in 1..cardinality(wanted) loop
    outcome := 'reserved';
    granted := output_caps[i];
    budget := null;
    if call_reserves_quota(begun[i]) then
      select decided.outcome, decided.granted into outcome, granted
        from completion_quota_decide(quota, input_bounds[i], output_caps[i], least_output,
                                     input_limit, output_limit) as decided;
      if outcome = 'reserved' and waits then
        outcome := 'wait';
      end if;
      waits := waits or outcome = 'wait';
    end if;
    if outcome = 'reserved' and has_budgets then
      select decided.outcome, decided.budget, decided.bound, decided.rest into outcome, budget, bound, rest
        from budget_decide(of_tenant, begun[i], bounded[i], input_bounds[i], granted) as decided;
      if outcome = 'free' and call_reserves_quota(begun[i]) then
        outcome := 'reserved';
      end if;
    elsif outcome = 'reserved' and not call_reserves_quota(begun[i]) then
      outcome := 'free';
    end if;
    if outcome = 'reserved' then
      insert into completion_reservation (tenant, reservation, input, output, cost, expires_at, sent, call)
        values (of_tenant, wanted[i], input_bounds[i], granted,
                call_bound(begun[i] -> 'price', input_bounds[i], granted), clock_timestamp() + lease, false, begun[i]);
      if call_reserves_quota(begun[i]) then
        quota.input_reserved := quota.input_reserved + input_bounds[i];
        quota.output_reserved := quota.output_reserved + granted;
      end if;
      changed := true;
    end if;
    return next;
  end loop;

  if changed then
    -- Unlocks the row before the disk has synced. completion_quota_send waits for the disk before the call leaves; a
    -- settlement lost in a server crash leaves its reservation, which is charged in full.
    perform set_config('synchronous_commit', 'off', true);
    update completion_quota q
      set input_used = quota.input_used, output_used = quota.output_used,
          input_reserved = quota.input_reserved, output_reserved = quota.output_reserved
      where q.tenant = of_tenant;
  end if;
end
$$;
