-- tenants_with of one server, worker by worker, on the connection that the coordinator keeps to each. A worker that
-- is unreachable leaves out its tenants, and the work for all others continues.
create function tenants_with(of_tables text[], conditions text[]) returns table (question integer, tenant text)
language plpgsql as $$
declare
  a_tenant text;
begin
  for a_tenant in select w.name from worker_names() as w (name) loop
    begin
      return query select w.question, w.tenant from tenants_of_worker(a_tenant, of_tables, conditions) w;
    exception when connection_exception or connection_failure or admin_shutdown or crash_shutdown
      or cannot_connect_now then
      null;
    end;
  end loop;
end
$$;
