-- Whether the reservation of a call is one of the quota: calls with the tenant's own keys reserve for budgets alone.
-- Null is the call of a reservation from before there were records.
create function call_reserves_quota(call jsonb) returns boolean language sql immutable as $$
  select coalesce(call ->> 'token', 'shared') = 'shared'
$$;
