-- Completions: what a tenant has used of the shared token, and what repeats of a request are answered with.
-- docs/decisions/0004-quota-and-completions.md tells why it is laid out like this.

-- One row a tenant, for its lifetime. Whatever changes a reservation locks this row first.
create table completion_quota (
  tenant          text collate "C" primary key references tenant (tenant),
  input_used      bigint not null default 0,
  output_used     bigint not null default 0,
  input_reserved  bigint not null default 0 check (input_reserved >= 0),
  output_reserved bigint not null default 0 check (output_reserved >= 0)
) with (fillfactor = 50);

-- One row a call that has not been settled. When its lease has ended its process counts as dead: it is charged in
-- full, and kept for a while, because figures that come late correct it.
create table completion_reservation (
  tenant      text collate "C" not null references tenant (tenant),
  reservation uuid not null,
  input       bigint not null,
  output      bigint not null,
  expires_at  timestamptz not null,
  charged     boolean not null default false,
  primary key (tenant, reservation)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index completion_reservation_open on completion_reservation (tenant, expires_at) where not charged;

-- What a call may do now: 'reserved', with its output cap shrunk to what is not settled yet; 'wait', because it fits
-- once others have settled; 'exceeded', because it does not.
create function completion_quota_decide(quota completion_quota, input_bound bigint, output_cap bigint,
                                        least_output bigint, input_limit bigint, output_limit bigint,
                                        out outcome text, out granted bigint)
language plpgsql immutable as $$
begin
  granted := least(output_cap, output_limit - quota.output_used);
  outcome := case
    when quota.input_used + input_bound > input_limit or quota.output_used + least_output > output_limit
      then 'exceeded'
    when quota.input_used + quota.input_reserved + input_bound > input_limit
      or quota.output_used + quota.output_reserved + granted > output_limit
      then 'wait'
    else 'reserved'
  end;
end
$$;

-- Charges in full what has outlived its lease. The caller holds the lock on the tenant's quota.
create function completion_quota_charge_expired(of_tenant text) returns void language sql as $$
  with expired as (
    update completion_reservation set charged = true
      where tenant = of_tenant and not charged and expires_at <= clock_timestamp()
      returning input, output
  )
  update completion_quota
    set input_used = input_used + total.input, output_used = output_used + total.output,
        input_reserved = input_reserved - total.input, output_reserved = output_reserved - total.output
    from (select sum(input)::bigint as input, sum(output)::bigint as output from expired) as total
    where tenant = of_tenant and total.input is not null
$$;

-- Settles some reservations and makes others, in this order and in one transaction, so that a process sends one batch
-- of a tenant at a time, however many calls it has. A settled reservation is replaced by what was used, null being
-- what was reserved; one that is not there any more was settled before. Answers a row for each that is wanted, in
-- order: none that has to wait is overtaken. Nothing is locked or written where nothing changes, so that those who
-- wait may ask often.
create function completion_quota_apply(of_tenant text,
                                       settled uuid[], input_tokens bigint[], output_tokens bigint[],
                                       wanted uuid[], input_bounds bigint[], output_caps bigint[], leases interval[],
                                       least_output bigint, input_limit bigint, output_limit bigint)
returns table (outcome text, granted bigint) language plpgsql as $$
declare
  quota completion_quota;
  waits boolean := false;
  changed boolean := false;
begin
  select * into quota from completion_quota q where q.tenant = of_tenant;
  if not found then
    insert into completion_quota (tenant) values (of_tenant) on conflict do nothing;
  elsif cardinality(settled) = 0
    and not exists (select from completion_reservation r
                      where r.tenant = of_tenant and not r.charged and r.expires_at <= clock_timestamp())
    and not exists (select from unnest(input_bounds, output_caps) as want (bound, cap)
                      cross join completion_quota_decide(quota, want.bound, want.cap, least_output,
                                                         input_limit, output_limit) as decided
                      where decided.outcome = 'reserved')
  then
    return query
      select decided.outcome, decided.granted
        from unnest(input_bounds, output_caps) with ordinality as want (bound, cap, place)
        cross join completion_quota_decide(quota, want.bound, want.cap, least_output,
                                           input_limit, output_limit) as decided
        order by want.place;
    return;
  end if;

  perform from completion_quota q where q.tenant = of_tenant for update;
  perform completion_quota_charge_expired(of_tenant);
  select * into quota from completion_quota q where q.tenant = of_tenant;

  if cardinality(settled) > 0 then
    with gone as (
      delete from completion_reservation r
        using unnest(settled, input_tokens, output_tokens) as used (reservation, input, output)
        where r.tenant = of_tenant and r.reservation = used.reservation
        returning r.input, r.output, r.charged, coalesce(used.input, r.input) as input_used,
                  coalesce(used.output, r.output) as output_used
    )
    select quota.tenant,
           quota.input_used + coalesce(sum(gone.input_used - case when charged then input else 0 end), 0),
           quota.output_used + coalesce(sum(gone.output_used - case when charged then output else 0 end), 0),
           quota.input_reserved - coalesce(sum(input) filter (where not charged), 0),
           quota.output_reserved - coalesce(sum(output) filter (where not charged), 0)
      into quota
      from gone;
    changed := true;
  end if;

  for i in 1..cardinality(wanted) loop
    select decided.outcome, decided.granted into outcome, granted
      from completion_quota_decide(quota, input_bounds[i], output_caps[i], least_output,
                                   input_limit, output_limit) as decided;
    if outcome = 'reserved' and waits then
      outcome := 'wait';
    end if;
    waits := waits or outcome = 'wait';
    if outcome = 'reserved' then
      insert into completion_reservation (tenant, reservation, input, output, expires_at)
        values (of_tenant, wanted[i], input_bounds[i], granted, clock_timestamp() + leases[i]);
      quota.input_reserved := quota.input_reserved + input_bounds[i];
      quota.output_reserved := quota.output_reserved + granted;
      changed := true;
    end if;
    return next;
  end loop;

  if changed then
    -- The row is free again before the disk has answered. Whoever reserves waits for the disk afterwards, before the
    -- call goes out; a settlement that a crash of the server loses leaves its reservation, to be charged in full.
    perform set_config('synchronous_commit', 'off', true);
    update completion_quota q
      set input_used = quota.input_used, output_used = quota.output_used,
          input_reserved = quota.input_reserved, output_reserved = quota.output_reserved
      where q.tenant = of_tenant;
  end if;
end
$$;

-- Requests that came with an Idempotency-Key, which is kept as its hash. While one runs, `expires_at` is how long its
-- process is believed to live, which it goes on to extend; afterwards, how long the sealed outcome is remembered.
create table completion_request (
  tenant      text collate "C" not null references tenant (tenant),
  client_id   text collate "C" not null,
  key_hash    bytea not null,
  attempt     uuid not null,
  fingerprint bytea not null,
  state       text not null check (state in ('running', 'succeeded', 'failed')),
  expires_at  timestamptz not null,
  outcome     bytea check ((outcome is null) = (state = 'running')),
  primary key (tenant, client_id, key_hash)
);
create index completion_request_expiry on completion_request (expires_at);
