-- Numbers for the rows of a batch that only a cluster gives beforehand. Null: one server's identity columns number rows.
create function record_numbers(wanted integer) returns bigint[] language sql immutable as 'select null::bigint[]';
