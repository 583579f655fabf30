-- Writes one record and commits with the server's own setting: the flush includes all commits before it. Answers whether
-- those of all tenants are meant, because all have one server.
create function completion_durable(of_tenant text) returns boolean language plpgsql as $$
begin
  perform pg_logical_emit_message(true, 'annals', '');
  return true;
end
$$;
