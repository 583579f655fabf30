-- Numbers for the rows of a batch, from the one sequence of the coordinator, so that a tenant's numbers keep growing
-- when it moves to another worker.
create function record_numbers(wanted integer) returns bigint[] language plpgsql as $$
begin
  return array(select nextval('change_number') from generate_series(1, wanted));
end
$$;
