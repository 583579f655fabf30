-- Counts the entries that have no position and no delta which waits for one: the first positions are theirs. To be
-- called under the lock of change_position_give.
create function change_position_begin(of_tenant text) returns bigint language plpgsql as $$
declare
  since constant bigint := change_horizon(of_tenant, (extract(epoch from clock_timestamp()) * 1000)::bigint);
  -- in one statement, so that it is of one snapshot
  entries constant bigint := change_position_earlier(of_tenant, since);
begin
  update change_position_backlog b set until = entries, at = since, fingerprint = change_position_fingerprint()
    where b.tenant = of_tenant;
  return entries;
end
$$;
