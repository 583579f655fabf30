-- The number of entries of a key from which a cell has tallies of its children, unless it is one of the finest.
create function change_dense() returns bigint language sql immutable parallel safe as 'select 64::bigint';
