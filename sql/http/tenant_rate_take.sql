-- Takes up to a portion of the tokens that one of the tenant's keys has, or with the key '' the tenant, one a request.
-- Tokens come back at the rate, and at most as many are kept as come in 0.9 seconds: with the 0.1 seconds that a
-- process takes ahead, that is one second. Where there is none, `seconds` is how long until there is one.
create function tenant_rate_take(of_tenant text, of_key text, rate double precision, portion integer)
returns table (granted integer, seconds double precision) language plpgsql as $$
declare
  capacity double precision := greatest(1, rate * 0.9);
  bucket tenant_rate;
  moment timestamptz;
begin
  select * into bucket from tenant_rate r where r.tenant = of_tenant and r.key_id = of_key for update;
  if not found then
    insert into tenant_rate (tenant, key_id, tokens, refilled_at)
      values (of_tenant, of_key, capacity, clock_timestamp())
      on conflict do nothing;
    select * into bucket from tenant_rate r where r.tenant = of_tenant and r.key_id = of_key for update;
  end if;
  -- Taken after the lock, and never behind what another process has noted.
  moment := greatest(clock_timestamp(), bucket.refilled_at);
  bucket.tokens := least(capacity, bucket.tokens + rate * extract(epoch from moment - bucket.refilled_at));
  granted := least(portion, floor(bucket.tokens))::integer;
  seconds := case when granted > 0 then 0 else (1 - bucket.tokens) / rate end;
  update tenant_rate r set tokens = bucket.tokens - granted, refilled_at = moment
    where r.tenant = of_tenant and r.key_id = of_key;
  return next;
end
$$;
