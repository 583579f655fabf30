-- completion_durable of one server, on the worker that has the tenant's reservations: its log is flushed, and no other one.
create function completion_durable(of_tenant text) returns boolean language plpgsql as $$
begin
  perform pg_logical_emit_message(true, 'annals', '');
  return false;
end
$$;
