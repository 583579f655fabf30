-- Returns which of these reservations may be sent, each with the lease that its call needs. Commits durably, together
-- with all earlier commits, before the calls leave. Reservations past their lease are gone or about to go.
create function completion_quota_send(of_tenant text, reservations uuid[], leases interval[])
returns setof uuid language plpgsql as $$
declare
  moment constant timestamptz := clock_timestamp();
  -- A constant: a cluster refuses an update that adds a column to a time.
  ends constant timestamptz[] := array(
    select moment + l.lease from unnest(leases) with ordinality as l (lease, place) order by l.place);
begin
  return query
    update completion_reservation r
      set sent = true, expires_at = sending.ends
      from unnest(reservations, ends) as sending (reservation, ends)
      where r.tenant = of_tenant and r.reservation = sending.reservation
        and not r.sent and not r.charged and r.expires_at > moment
      returning r.reservation;
end
$$;
