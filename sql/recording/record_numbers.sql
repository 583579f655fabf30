-- Numbers for the rows of a batch in a cluster (see distributed/). Null: on one server identity columns give them.
create function record_numbers(wanted integer) returns bigint[] language sql immutable as 'select null::bigint[]';
