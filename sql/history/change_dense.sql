create function change_dense() returns bigint language sql immutable parallel safe as 'select 64::bigint';
