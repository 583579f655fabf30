-- Whether a call's reservation is one of the quota: calls with own keys reserve only budgets. Null: a reservation from
-- before there were records.
create function call_reserves_quota(call jsonb) returns boolean language sql immutable as $$
  select coalesce(call ->> 'token', 'shared') = 'shared'
$$;
