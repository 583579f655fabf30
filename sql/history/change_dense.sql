-- A cell with so many entries of a key has tallies of its children, where it is not one of the finest. Says so once.
create function change_dense() returns bigint language sql immutable parallel safe as 'select 64::bigint';
