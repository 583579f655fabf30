-- Numbers for the rows of a batch, which a cluster gives beforehand. Null: on one server identity columns give them.
create function record_numbers(wanted integer) returns bigint[] language sql immutable as 'select null::bigint[]';
